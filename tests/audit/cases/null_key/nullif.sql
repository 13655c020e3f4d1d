-- dialect: postgres
-- expect: RS301 at 3, RS304 at 3
insert into daily_orders (order_date, channel, n)
select order_date, nullif(channel, ''), count(*) from orders_fact where order_date = :day group by 1, 2
on conflict (order_date, channel) do update set n = excluded.n;
