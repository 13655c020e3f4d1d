-- dialect: bigquery
-- expect: RS103 at 5
merge daily_orders as t using late_orders as s on t.order_date = s.order_date
when matched then
  update set n = if(s.is_return, t.n - s.n, t.n + s.n)
when not matched then insert (order_date, n) values (s.order_date, s.n);
