-- dialect: postgres
-- expect: RS104 at 3
insert into daily_orders select order_date, channel, count(*) from orders_fact group by 1, 2
on conflict (order_date, channel) do nothing;
