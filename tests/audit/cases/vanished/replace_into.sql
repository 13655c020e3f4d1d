-- dialect: mysql
-- expect: RS301 at 3
replace into daily_orders (order_date, n) select order_date, count(*) from orders_fact group by order_date;
