-- dialect: databricks
-- expect: RS301 at 3
merge into daily_orders as t using (
  select order_date, date_trunc('month', order_date) as month, count(*) as n from orders_fact group by 1, 2
) as s on t.order_date = s.order_date
when matched then update set * when not matched then insert *;
