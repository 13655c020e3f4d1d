-- dialect: duckdb
-- expect: nothing
create table daily_orders (order_date date, channel text, run_id bigint, n bigint, primary key (order_date, channel, run_id));
create or replace table daily_orders_copy as select * from daily_orders;
