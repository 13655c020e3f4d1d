-- dialect: duckdb
-- expect: RS101 at 3
insert into daily_orders by name
select order_date, count(*) as order_count from 'orders/*.parquet' group by all;
