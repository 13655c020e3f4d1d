-- dialect: spark
-- expect: nothing
insert overwrite table daily_orders partition (order_date = '${ds}')
select channel, count(*), sum(amount_cents) from orders_fact where order_date = '${ds}' group by channel;
