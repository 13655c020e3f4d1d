-- dialect: postgres
-- expect: RS103 at 6
insert into daily_orders (order_date, channel, order_count, amount_cents)
select order_date, channel, count(*), sum(amount_cents) from orders_fact where order_date = :day group by 1, 2
on conflict (order_date, channel) do update
set order_count = daily_orders.order_count + excluded.order_count,
    amount_cents = daily_orders.amount_cents + excluded.amount_cents;
