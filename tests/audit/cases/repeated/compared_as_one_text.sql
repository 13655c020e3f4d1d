-- dialect: tsql
-- expect: RS301 at 3
merge dbo.daily_orders as t
using (select order_date, channel, count(*) as n from dbo.orders_fact group by order_date, channel) as s
on concat(t.order_date, t.channel) = concat(s.order_date, s.channel)
when matched then update set t.n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
