-- dialect: snowflake
-- expect: note RS401 at 5
create or replace table recent_orders as
select channel, count(*) as order_count from orders_fact
where order_date >= dateadd(day, -90, current_date()) group by channel;
