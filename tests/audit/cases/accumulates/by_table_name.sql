-- dialect: postgres
-- expect: RS103 at 4
insert into daily_orders select order_date, channel, sum(amount_cents) from orders_fact group by 1, 2
on conflict (order_date, channel) do update set amount_cents = daily_orders.amount_cents + excluded.amount_cents;
