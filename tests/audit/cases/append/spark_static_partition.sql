-- dialect: spark
-- expect: RS101 at 3
insert into daily_orders partition (order_date = '${day}')
select channel, count(*) from orders_fact where order_date = '${day}' group by channel;
