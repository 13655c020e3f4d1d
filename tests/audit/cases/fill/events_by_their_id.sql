-- dialect: postgres
-- expect: nothing
insert into orders_fact select order_id, order_date, amount_cents from raw_orders
on conflict (order_id) do nothing;
