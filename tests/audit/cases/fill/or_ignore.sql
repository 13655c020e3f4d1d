-- dialect: duckdb
-- expect: RS104 at 3
insert or ignore into daily_orders select order_date, count(*) from orders_fact group by order_date;
