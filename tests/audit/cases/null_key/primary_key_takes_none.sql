-- dialect: postgres
-- expect: RS301 at 4
create table daily_orders (order_date date, channel text, n bigint, primary key (order_date, channel));
insert into daily_orders (order_date, channel, n)
select order_date, nullif(channel, ''), count(*) from orders_fact where order_date = :day group by 1, 2
on conflict (order_date, channel) do update set n = excluded.n;
