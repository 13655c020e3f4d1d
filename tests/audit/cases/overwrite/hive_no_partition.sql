-- dialect: hive
-- expect: unknown RS206 at 3
insert overwrite table daily_orders
select order_date, channel, count(*) from orders_fact where order_date = '${hiveconf:day}' group by order_date, channel;
