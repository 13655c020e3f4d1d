-- dialect: snowflake
-- expect: nothing
insert overwrite into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact group by order_date, channel;
