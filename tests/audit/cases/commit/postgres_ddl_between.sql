-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between :start and :end;
create temporary table staged as
select order_date, channel, count(*) as order_count from orders_fact
where order_date between :start and :end group by order_date, channel;
insert into daily_orders (order_date, channel, order_count) select order_date, channel, order_count from staged;
commit;
