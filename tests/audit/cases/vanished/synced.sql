-- dialect: bigquery
-- expect: nothing
merge shop.daily_orders as t
using (
  select order_date, channel, count(*) as n from shop.orders_fact where order_date between @start and @end group by 1, 2
) as s
on t.order_date = s.order_date and t.channel = s.channel
when matched then update set n = s.n
when not matched then insert row
when not matched by source and t.order_date between @start and @end then delete;
