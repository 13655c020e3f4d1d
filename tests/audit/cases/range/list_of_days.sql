-- dialect: bigquery
-- expect: nothing
begin transaction;
delete from shop.daily_orders where order_date in ('2026-01-01', '2026-01-02', '2026-01-03');
insert into shop.daily_orders (order_date, channel, order_count)
select date(order_ts), channel, count(*) from shop.orders
where date(order_ts) between date '2026-01-01' and date '2026-01-03' group by 1, 2;
commit transaction;
