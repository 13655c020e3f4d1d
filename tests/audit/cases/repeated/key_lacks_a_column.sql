-- dialect: snowflake
-- expect: RS303 at 4
merge into daily_orders as t using (select order_date, channel, count(*) as n from orders_fact group by 1, 2) as s
on t.order_date = s.order_date
when matched then update set n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
