-- dialect: mysql
-- expect: RS101 at 5
create temporary table today as
select order_date, channel, count(*) as order_count from orders_fact where order_date = %s group by order_date, channel;
insert into daily_orders select * from today;
