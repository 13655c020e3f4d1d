-- dialect: databricks
-- expect: RS103 at 3
merge into daily_orders t using updates s on t.order_date <=> s.order_date when matched then update set t.n = s.n + t.n,
  t.amount_cents = ifnull(t.amount_cents, 0) + s.amount_cents
when not matched then insert *;
