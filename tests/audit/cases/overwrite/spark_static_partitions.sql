-- dialect: spark
-- expect: RS206 at 4
set spark.sql.sources.partitionOverwriteMode = static;
insert overwrite table daily_orders partition (order_date)
select channel, count(*), sum(amount_cents), order_date from orders_fact
where order_date between '${start}' and '${end}' group by channel, order_date;
