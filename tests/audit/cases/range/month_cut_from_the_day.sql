-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date >= date_trunc('month', :day::date) and order_date < date_trunc('month', :day::date) + interval '1 month';
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where date_trunc('month', order_date) = date_trunc('month', :day::date) group by 1, 2;
commit;
