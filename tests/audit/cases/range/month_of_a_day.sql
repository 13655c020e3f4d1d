-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between date_trunc('month', :day::date) and date_trunc('month', :day::date) + interval '1 month' - interval '1 day';
insert into daily_orders (order_date, channel, order_count)
select order_ts::date, channel, count(*) from orders
where order_ts >= date_trunc('month', :day::date) and order_ts < date_trunc('month', :day::date) + interval '1 month' group by 1, 2;
commit;
