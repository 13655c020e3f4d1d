-- dialect: clickhouse
-- expect: RS301 at 7
create table if not exists daily_orders
(order_date Date, channel String, n UInt64)
engine = ReplacingMergeTree
order by (order_date, channel);
insert into daily_orders select order_date, channel, count() from orders_fact group by order_date, channel;
