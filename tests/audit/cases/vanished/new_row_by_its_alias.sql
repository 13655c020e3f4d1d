-- dialect: mysql
-- expect: RS301 at 3
insert into daily_orders (order_date, n)
select * from (select order_date, count(*) as n from orders_fact group by order_date) as new
on duplicate key update n = new.n;
