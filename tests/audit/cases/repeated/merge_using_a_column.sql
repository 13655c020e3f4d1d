-- dialect: duckdb
-- expect: RS303 at 3
merge into daily_orders as t
using (select order_date, channel, count(*) as n from orders_fact group by all) as s using (order_date)
when matched then update set n = s.n when not matched then insert by name;
