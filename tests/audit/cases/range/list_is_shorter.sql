-- dialect: bigquery
-- expect: RS201 at 4
begin transaction;
delete from shop.daily_orders where order_date in ('2026-01-01', '2026-01-05');
insert into shop.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from shop.orders_fact
where order_date in ('2026-01-01', '2026-01-03', '2026-01-05') group by 1, 2;
commit transaction;
