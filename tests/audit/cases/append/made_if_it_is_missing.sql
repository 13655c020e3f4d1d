-- dialect: spark
-- expect: RS101 at 4
create table if not exists daily_orders as select order_date, count(*) as n from orders_fact where 1 = 0 group by order_date;
insert into daily_orders select order_date, count(*) from orders_fact where order_date = '${day}' group by order_date;
