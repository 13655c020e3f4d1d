-- dialect: databricks
-- expect: RS302 at 9
merge into daily_orders as t
using (
  select order_date, channel, count(*) as n from orders_fact where order_date between :start and :end group by 1, 2
) as s
on t.order_date = s.order_date and t.channel = s.channel
when matched then update set *
when not matched by source and t.channel <> 'manual' then delete
when not matched then insert *;
