-- dialect: databricks
-- expect: RS402 at 3
create or replace table channel_estimate as select channel, count(*) * 10 as orders from orders_fact tablesample (10 percent) group by channel;
