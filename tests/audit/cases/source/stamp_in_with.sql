-- dialect: snowflake
-- expect: nothing
create or replace table daily_orders as
with counted as (
  select order_date, channel, count(*) as order_count, current_timestamp() as refreshed_at from orders_fact group by 1, 2
)
select order_date, channel, order_count, refreshed_at from counted;
