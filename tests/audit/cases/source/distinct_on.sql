-- dialect: duckdb
-- expect: RS402 at 4
create or replace table latest_orders as
select distinct on (order_id) order_id, order_date, status from order_versions;
