-- dialect: bigquery
-- expect: RS302 at 10, RS401 at 6
merge shop.daily_orders as t
using (
  select order_date, channel, count(*) as n from shop.orders_fact
  where order_date >= date_sub(current_date(), interval 7 day) group by 1, 2
) as s
on t.order_date = s.order_date and t.channel = s.channel
when matched then update set n = s.n
when not matched by source then delete
when not matched then insert row;
