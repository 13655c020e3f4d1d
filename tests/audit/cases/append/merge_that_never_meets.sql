-- dialect: snowflake
-- expect: RS101 at 3
merge into daily_orders as t
using (select order_date, count(*) as n from orders_fact where order_date = :day group by order_date) as s on false
when not matched then insert (order_date, n) values (s.order_date, s.n);
