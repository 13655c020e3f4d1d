-- dialect: spark
-- expect: RS203 at 4
set spark.sql.sources.partitionOverwriteMode=static;
insert overwrite table daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date between '${start}' and '${end}' group by order_date, channel;
