-- dialect: mysql
-- expect: nothing
create table daily_orders_new like daily_orders;
insert into daily_orders_new select * from daily_orders where order_date not between %s and %s;
insert into daily_orders_new select order_date, channel, count(*) from orders_fact
where order_date between %s and %s group by order_date, channel;
rename table daily_orders to daily_orders_old, daily_orders_new to daily_orders;
drop table daily_orders_old;
