-- dialect: mysql
-- expect: RS104 at 3
insert ignore into daily_orders (order_date, order_count)
select order_date, count(*) from orders_fact group by order_date;
