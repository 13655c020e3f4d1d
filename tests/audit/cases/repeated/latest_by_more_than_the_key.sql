-- dialect: snowflake
-- expect: RS303 at 5
merge into orders_fact as t using (
  select * from raw_orders qualify row_number() over (partition by order_id, channel order by loaded_at desc) = 1
) as s on t.order_id = s.order_id
when matched then update set amount_cents = s.amount_cents
when not matched then insert (order_id, amount_cents) values (s.order_id, s.amount_cents);
