-- dialect: postgres
-- expect: unknown RS303 at 4
create table orders_fact (order_id bigint primary key, order_date date, channel text, amount_cents bigint);
insert into daily_orders (order_date, channel, amount_cents)
select order_date, channel, amount_cents from orders_fact
on conflict (order_date, channel) do update set amount_cents = excluded.amount_cents;
