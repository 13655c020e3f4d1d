-- dialect: postgres
-- expect: nothing
begin;
delete from monthly_orders where order_month = :month;
insert into monthly_orders (order_month, channel, order_count)
select date_trunc('month', order_ts)::date, channel, count(*) from orders
where order_ts >= :month and order_ts < :month::date + interval '1 month' group by 1, 2;
commit;
