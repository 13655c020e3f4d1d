-- dialect: spark
-- expect: nothing
create table if not exists channel_totals (channel string, order_count bigint) using parquet;
insert overwrite table channel_totals select channel, count(*) from orders_fact group by channel;
