-- dialect: spark
-- expect: RS206 at 3
insert overwrite table daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact group by order_date, channel;
