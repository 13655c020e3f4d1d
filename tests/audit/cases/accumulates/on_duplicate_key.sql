-- dialect: mysql
-- expect: RS103 at 4
insert into daily_orders (order_date, order_count) select order_date, count(*) from orders_fact group by order_date
on duplicate key update order_count = order_count + values(order_count);
