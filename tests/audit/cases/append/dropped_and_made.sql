-- dialect: redshift
-- expect: note RS205 at 5
drop table if exists daily_orders_all;
create table daily_orders_all (order_date date, order_count bigint);
insert into daily_orders_all select order_date, count(*) from orders_fact group by order_date;
