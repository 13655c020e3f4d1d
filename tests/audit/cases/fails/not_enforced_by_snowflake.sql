-- dialect: snowflake
-- expect: RS101 at 4
create table daily_orders (order_date date, channel varchar, order_count int, primary key (order_date, channel));
insert into daily_orders select order_date, channel, count(*) from orders_fact group by order_date, channel;
