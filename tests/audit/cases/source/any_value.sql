-- dialect: snowflake
-- expect: note RS402 at 4
create or replace table daily_orders as
select order_date, channel, any_value(currency) as currency, count(*) as order_count from orders_fact group by 1, 2;
