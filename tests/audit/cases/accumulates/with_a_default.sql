-- dialect: duckdb
-- expect: RS103 at 4
insert into daily_orders select order_date, sum(amount_cents) from orders_fact group by order_date
on conflict (order_date) do update set amount_cents = coalesce(amount_cents, 0) + excluded.amount_cents;
