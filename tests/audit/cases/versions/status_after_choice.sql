-- dialect: snowflake
-- expect: nothing
create or replace table latest_orders as
with newest as (
  select * from order_versions qualify row_number() over (partition by order_id order by version_number desc) = 1
)
select order_id, order_date, amount_cents from newest where status = 'paid';
