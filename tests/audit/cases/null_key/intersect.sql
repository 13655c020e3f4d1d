-- dialect: tsql
-- expect: RS301 at 3
merge dbo.daily_orders as t
using (select order_date, nullif(channel, '') as channel, count(*) as n from dbo.orders_fact group by order_date, nullif(channel, '')) as s
on exists (select t.order_date, t.channel intersect select s.order_date, s.channel)
when matched then update set t.n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
