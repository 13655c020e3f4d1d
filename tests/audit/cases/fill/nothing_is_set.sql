-- dialect: mysql
-- expect: RS104 at 3
insert into daily_orders (order_date, n) select order_date, count(*) from orders_fact group by order_date
on duplicate key update order_date = order_date;
