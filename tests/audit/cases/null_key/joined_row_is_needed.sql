-- dialect: snowflake
-- expect: RS301 at 3
merge into daily_orders as t
using (
  select o.order_date, c.channel, count(*) as n from orders_fact as o left join channels as c on c.id = o.channel_id
  where o.order_date = :day and c.is_open = 1 group by o.order_date, c.channel
) as s on t.order_date = s.order_date and t.channel = s.channel
when matched then update set n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
