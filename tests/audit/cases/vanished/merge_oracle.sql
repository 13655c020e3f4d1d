-- dialect: oracle
-- expect: RS301 at 3
merge into daily_orders t
using (select trunc(ordered_at) order_date, count(*) n from orders_fact group by trunc(ordered_at)) s
on (t.order_date = s.order_date)
when matched then update set t.n = s.n when not matched then insert (order_date, n) values (s.order_date, s.n);
