-- dialect: redshift
-- expect: RS101 at 4
create table daily_orders (order_date date primary key, order_count bigint);
insert into daily_orders select order_date, count(*) from orders_fact group by order_date;
