-- dialect: bigquery
-- expect: nothing
merge shop.daily_orders as t
using (
  select order_date, channel, count(*) as n from shop.orders_fact where order_date between @start and @end group by 1, 2
) as s
on false
when not matched by source and t.order_date between @start and @end then delete
when not matched then insert row;
