-- dialect: duckdb
-- expect: RS301 at 3
insert or replace into daily_orders select order_date, count(*) from orders_fact group by order_date;
