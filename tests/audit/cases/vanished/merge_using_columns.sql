-- dialect: duckdb
-- expect: RS301 at 3
merge into daily_orders as t
using (select order_date, channel, count(*) as n from orders_fact group by all) as s using (order_date, channel)
when matched then update when not matched then insert by name;
