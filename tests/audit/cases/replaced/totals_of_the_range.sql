-- dialect: databricks
-- expect: nothing
create or replace table channel_totals as
select channel, count(*) as order_count from orders_fact where order_date between :start and :end group by channel;
