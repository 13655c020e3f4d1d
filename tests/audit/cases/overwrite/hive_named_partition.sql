-- dialect: hive
-- expect: nothing
insert overwrite table daily_orders partition (ds = '${hiveconf:ds}')
select channel, count(*), sum(amount_cents) from orders_fact where ds = '${hiveconf:ds}' group by channel;
