-- dialect: postgres
-- expect: RS101 at 4
create table daily_orders (id bigint generated always as identity primary key, order_date date, order_count bigint);
insert into daily_orders (order_date, order_count) select order_date, count(*) from orders_fact group by order_date;
