-- dialect: postgres
-- expect: RS201 at 4
begin;
delete from daily_orders where not (order_date < :start or order_date > :end);
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where not order_date < :start and not order_date >= :end group by 1, 2;
commit;
