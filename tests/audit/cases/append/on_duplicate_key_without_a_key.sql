-- dialect: mysql
-- expect: RS101 at 4
create table daily_orders (order_date date not null, channel varchar(20) not null, order_count int not null);
insert into daily_orders select order_date, channel, count(*) from orders_fact group by order_date, channel
on duplicate key update order_count = values(order_count);
