-- dialect: snowflake
-- expect: nothing
merge into orders_fact as t using raw_orders as s on t.order_id = s.order_id
when matched then update set amount_cents = s.amount_cents
when not matched then insert (order_id, amount_cents) values (s.order_id, s.amount_cents);
