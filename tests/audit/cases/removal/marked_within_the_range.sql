-- dialect: snowflake
-- expect: nothing
merge into daily_orders as t
using (
  select coalesce(s.order_date, d.order_date) as order_date, coalesce(s.channel, d.channel) as channel, s.n,
    s.order_date is null as is_gone
  from (
    select order_date, channel, count(*) as n from orders_fact where order_date between :start and :end group by 1, 2
  ) as s
  full outer join (select * from daily_orders where order_date between :start and :end) as d
    on d.order_date = s.order_date and d.channel = s.channel
) as s
on t.order_date = s.order_date and t.channel = s.channel
when matched and s.is_gone then delete
when matched then update set n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
