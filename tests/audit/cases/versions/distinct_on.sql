-- dialect: duckdb
-- expect: RS405 at 5
create or replace table latest_orders as
select distinct on (order_id) order_id, order_date, amount_cents from order_versions
where status <> 'cancelled'
order by order_id, version desc;
