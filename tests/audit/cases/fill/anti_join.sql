-- dialect: spark
-- expect: RS104 at 3
insert into daily_orders
select s.* from (select order_date, count(*) as n from orders_fact group by order_date) as s
left anti join daily_orders as t on t.order_date = s.order_date;
