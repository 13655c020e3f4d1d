-- dialect: duckdb
-- expect: nothing
create table if not exists daily_orders as select order_date, count(*) as n from orders_fact group by order_date;
