-- dialect: snowflake
-- expect: RS101 at 3
insert into daily_orders_by_channel
select * from (select order_date, channel, amount_cents from orders_fact where order_date = :day)
pivot (sum(amount_cents) for channel in ('web', 'store'));
