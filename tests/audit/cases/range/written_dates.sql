-- dialect: redshift
-- expect: nothing
begin;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select trunc(order_ts), channel, count(*) from orders
where order_ts >= '2026-01-01' and order_ts < '2026-02-01 00:00:00' group by 1, 2;
commit;
