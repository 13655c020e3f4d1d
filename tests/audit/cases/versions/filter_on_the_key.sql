-- dialect: bigquery
-- expect: nothing
create or replace table shop.latest_orders as
select order_id, order_date, status from shop.order_versions
where order_id > 1000
qualify row_number() over (partition by order_id order by version desc) = 1;
