-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select c.day, o.channel, count(*) from calendar c join orders_fact o on o.order_date = c.day
where o.order_date between :start and :end group by 1, 2;
commit;
