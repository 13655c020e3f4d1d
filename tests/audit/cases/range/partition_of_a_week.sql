-- dialect: spark
-- expect: nothing
insert overwrite table weekly_orders partition (ds = '${ds}')
select channel, count(*), sum(amount_cents) from orders_fact
where ds between date_sub('${ds}', 6) and '${ds}' group by channel;
