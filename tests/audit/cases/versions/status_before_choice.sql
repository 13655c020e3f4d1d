-- dialect: snowflake
-- expect: RS405 at 5
create or replace table latest_orders as
select order_id, order_date, amount_cents from order_versions
where status = 'paid'
qualify row_number() over (partition by order_id order by version_number desc) = 1;
