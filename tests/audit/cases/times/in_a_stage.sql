-- dialect: postgres
-- expect: RS404 at 6
begin;
create temporary table recomputed as
select order_ts::date as order_date, channel, count(*) as n from orders
where order_ts >= :start and order_ts <= :end group by 1, 2;
delete from daily_orders where order_date >= :start and order_date <= :end;
insert into daily_orders (order_date, channel, order_count) select order_date, channel, n from recomputed;
commit;
