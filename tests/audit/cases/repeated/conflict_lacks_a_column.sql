-- dialect: duckdb
-- expect: RS303 at 3
insert into daily_orders (order_date, channel, n)
select order_date, channel, count(*) from orders_fact group by order_date, channel
on conflict (order_date) do update set n = excluded.n, channel = excluded.channel;
