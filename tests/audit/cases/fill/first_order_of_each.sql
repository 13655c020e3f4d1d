-- dialect: postgres
-- expect: note RS104 at 3
insert into first_orders (customer_id, first_order) select customer_id, min(order_date) from orders_fact group by customer_id
on conflict (customer_id) do nothing;
