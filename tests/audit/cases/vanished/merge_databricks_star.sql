-- dialect: databricks
-- expect: RS301 at 4
create or replace temporary view today as select order_date, channel, count(*) as n from orders_fact group by 1, 2;
merge into daily_orders as t using today as s on t.order_date = s.order_date and t.channel = s.channel
when matched then update set * when not matched then insert *;
