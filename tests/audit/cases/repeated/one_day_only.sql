-- dialect: postgres
-- expect: RS301 at 3
insert into daily_orders (order_date, channel, n)
select order_date, channel, count(*) from orders_fact where channel = 'web' and order_date = :day group by 1, 2
on conflict (order_date) do update set n = excluded.n;
