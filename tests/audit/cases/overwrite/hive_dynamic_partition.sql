-- dialect: hive
-- expect: note RS206 at 4
set hive.exec.dynamic.partition.mode=nonstrict;
insert overwrite table daily_orders partition (order_date)
select channel, count(*), sum(amount_cents), order_date from orders_fact
where order_date between '${hiveconf:start}' and '${hiveconf:end}' group by channel, order_date;
