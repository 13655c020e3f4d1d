-- dialect: bigquery
-- expect: RS301 at 3
merge shop.daily_orders as t
using (select date(ordered_at) as d, channel as c, count(*) as n from shop.orders_fact group by 1, 2) as s
on t.order_date = s.d and t.channel = s.c
when matched then update set n = s.n
when not matched then insert (order_date, channel, n) values (s.d, s.c, s.n);
