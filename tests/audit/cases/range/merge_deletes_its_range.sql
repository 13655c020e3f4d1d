-- dialect: bigquery
-- expect: nothing
merge shop.daily_orders as target
using (
  select order_date, channel, count(*) as order_count from shop.orders_fact
  where order_date between @start and @end group by 1, 2
) as source
on target.order_date = source.order_date and target.channel = source.channel
when matched then update set order_count = source.order_count
when not matched then insert (order_date, channel, order_count) values (order_date, channel, order_count)
when not matched by source and target.order_date between @start and @end then delete;
