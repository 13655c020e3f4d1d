-- dialect: postgres
-- expect: RS103 at 6
insert into daily_orders as d (order_date, channel, amount_cents)
select order_date, channel, sum(amount_cents) from orders_fact where order_date = :day group by 1, 2
on conflict (order_date, channel)
do update set amount_cents = d.amount_cents + excluded.amount_cents;
