-- dialect: spark
-- expect: RS201 at 3
insert overwrite table daily_orders partition (ds = '${ds}')
select channel, count(*), sum(amount_cents) from orders_fact where ds = date_sub('${ds}', 1) group by channel;
