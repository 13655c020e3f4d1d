-- dialect: redshift
-- expect: RS101 at 3
insert into mart.daily_orders
select * from (select order_date, count(*) as n from orders_fact group by order_date) as d where d.n > 10;
