-- dialect: oracle
-- expect: RS102 at 5
create table daily_orders (order_date date, order_count number);
alter table daily_orders add constraint daily_orders_key primary key (order_date);
insert into daily_orders (order_date, order_count) select order_date, count(*) from orders_fact group by order_date;
