-- dialect: bigquery
-- expect: RS405 at 4
create or replace table shop.latest_orders as
with alive as (select * from shop.order_versions where deleted_at is null)
select order_id, order_date, status from alive
qualify row_number() over (partition by order_id order by updated_at desc) = 1;
