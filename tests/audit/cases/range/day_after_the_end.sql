-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between %(start)s and %(end)s;
insert into daily_orders (order_date, channel, order_count)
select date_trunc('day', order_ts)::date, channel, count(*) from orders_fact
where order_ts >= %(start)s::date and order_ts < (%(end)s::date + interval '1 day') group by 1, 2;
commit;
