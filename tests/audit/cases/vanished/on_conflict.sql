-- dialect: duckdb
-- expect: RS301 at 3
insert into daily_orders select order_date, channel, count(*) from orders_fact group by order_date, channel
on conflict (order_date, channel) do update set order_count = excluded.order_count;
