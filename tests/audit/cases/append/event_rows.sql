-- dialect: postgres
-- expect: nothing
insert into orders_fact (order_id, order_date, channel, amount_cents)
select order_id, ordered_at::date, channel, amount_cents from raw_orders where ordered_at::date = :day;
