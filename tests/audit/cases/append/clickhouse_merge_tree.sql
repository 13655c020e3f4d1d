-- dialect: clickhouse
-- expect: RS101 at 4
create table if not exists daily_orders (order_date Date, channel String, n UInt64) engine = MergeTree order by order_date;
insert into daily_orders select order_date, channel, count() from orders_fact group by order_date, channel;
