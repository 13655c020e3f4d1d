-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date = :day;
insert into daily_orders as d (order_date, channel, n)
select order_date, channel, count(*) from web_orders where order_date = :day group by 1, 2;
insert into daily_orders as d (order_date, channel, n)
select order_date, channel, count(*) from shop_orders where order_date = :day group by 1, 2
on conflict (order_date, channel) do update set n = d.n + excluded.n;
commit;
