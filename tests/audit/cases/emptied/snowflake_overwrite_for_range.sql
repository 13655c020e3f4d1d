-- dialect: snowflake
-- expect: RS203 at 3
insert overwrite into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date between :start and :end group by order_date, channel;
