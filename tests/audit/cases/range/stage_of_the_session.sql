-- dialect: postgres
-- expect: RS201 at 6
create temporary table recomputed as
select order_date, channel, count(*) as order_count from orders_fact
where order_date >= :start and order_date < :end group by 1, 2;
begin; delete from daily_orders where order_date between :start and :end;
insert into daily_orders select order_date, channel, order_count from recomputed;
commit;
