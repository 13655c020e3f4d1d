-- dialect: snowflake
-- expect: RS101 at 3
insert into daily_orders
select order_date, channel, sum(amount_cents) from orders_fact group by 1, 2 having sum(amount_cents) > 0;
