-- dialect: mysql
-- expect: note RS404 at 6
start transaction;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select date(order_ts), channel, count(*) from orders where order_ts between '2026-01-01 00:00:00' and '2026-01-31 23:59:59' group by 1, 2;
commit;
