-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date = :day;
insert into daily_orders select order_date, channel, count(*) from orders_fact where order_date = :day group by 1, 2
on conflict (order_date, channel) do nothing;
commit;
