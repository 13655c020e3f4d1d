-- dialect: clickhouse
-- expect: RS201 at 3, RS202 at 3
alter table daily_orders delete where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders
select toDate(order_ts) as order_date, channel, count() from orders
where order_ts >= '2026-01-01 00:00:00' and order_ts < '2026-01-31 00:00:00' group by order_date, channel;
