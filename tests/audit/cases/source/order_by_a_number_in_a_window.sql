-- dialect: snowflake
-- expect: RS402 at 4
create or replace table latest_orders as
select order_id, status from (select order_id, status, row_number() over (partition by order_id order by 1) as n from orders)
where n = 1;
