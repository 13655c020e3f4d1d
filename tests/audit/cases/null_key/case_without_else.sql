-- dialect: duckdb
-- expect: RS301 at 3, RS304 at 3
insert into daily_orders
select order_date, case when channel in ('web', 'app') then 'online' end as way, count(*) from orders_fact
where order_date = $day group by 1, 2
on conflict (order_date, way) do update set n = excluded.n;
