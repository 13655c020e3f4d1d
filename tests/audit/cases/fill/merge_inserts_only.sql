-- dialect: oracle
-- expect: RS104 at 3
merge into daily_orders t
using (select order_date, count(*) order_count from orders_fact group by order_date) s
on (t.order_date = s.order_date)
when not matched then insert (order_date, order_count) values (s.order_date, s.order_count);
