-- dialect: databricks
-- expect: RS104 at 3
merge into daily_orders as t
using (select order_date, channel, count(*) as n from orders_fact group by 1, 2) as s on t.order_date = s.order_date
when not matched then insert *;
