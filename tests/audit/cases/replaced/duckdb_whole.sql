-- dialect: duckdb
-- expect: nothing
create or replace table daily_orders as
select order_date, channel, count(*) as order_count from orders_fact group by all;
