-- dialect: postgres
-- expect: unknown RS201 at 4
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where loaded_at >= :start and loaded_at < :end group by 1, 2;
commit;
