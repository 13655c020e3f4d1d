-- dialect: hive
-- expect: RS202 at 3
delete from daily_orders where order_date = '${hiveconf:day}';
insert into table daily_orders
select order_date, channel, count(*) from orders_fact where order_date = '${hiveconf:day}' group by order_date, channel;
