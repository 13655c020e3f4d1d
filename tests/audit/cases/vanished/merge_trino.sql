-- dialect: trino
-- expect: RS301 at 3
merge into daily_orders as t
using (select order_date, count(*) as n from orders_fact group by order_date) as s on t.order_date = s.order_date
when matched then update set n = s.n when not matched then insert (order_date, n) values (s.order_date, s.n);
