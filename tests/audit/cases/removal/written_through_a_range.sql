-- dialect: tsql
-- expect: nothing
with t as (select * from dbo.daily_orders where order_date between @start and @end)
merge t
using (
  select order_date, channel, count(*) as n from dbo.orders_fact
  where order_date between @start and @end group by order_date, channel
) as s
on t.order_date = s.order_date and t.channel = s.channel
when matched then update set t.n = s.n
when not matched by source then delete
when not matched by target then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
