-- dialect: tsql
-- expect: RS301 at 3
merge dbo.daily_orders as t
using (
  select o.order_date, c.channel, count(*) as n from dbo.orders_fact as o left join dbo.channels as c on c.id = o.channel_id
  where o.order_date = @day group by o.order_date, c.channel
) as s on t.order_date = s.order_date and (t.channel = s.channel or (t.channel is null and s.channel is null))
when matched then update set t.n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
