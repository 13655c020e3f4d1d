-- dialect: snowflake
-- expect: RS301 at 3
merge into daily_orders as t using (
  select md5(order_date || '|' || channel) as id, order_date, channel, count(*) as n from orders_fact group by 1, 2, 3
) as s on t.id = s.id
when matched then update set n = s.n
when not matched then insert (id, order_date, channel, n) values (s.id, s.order_date, s.channel, s.n);
