-- dialect: bigquery
-- expect: RS301 at 3
merge into shop.daily_orders as t
using (select order_date, channel, count(*) as n from shop.orders_fact where order_date = @day group by 1, 2) as s
on t.order_date = s.order_date and t.channel = s.channel
when matched then update set n = s.n
when not matched then insert row;
