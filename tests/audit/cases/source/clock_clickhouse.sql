-- dialect: clickhouse
-- expect: RS401 at 4
insert overwrite daily_orders
select order_date, channel, countIf(due_date < today()) from orders_fact group by order_date, channel;
