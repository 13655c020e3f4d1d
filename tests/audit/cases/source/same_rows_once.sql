-- dialect: snowflake
-- expect: nothing
create or replace table order_days as
select order_id, order_date from order_events
qualify row_number() over (partition by order_id, order_date order by order_id) = 1;
