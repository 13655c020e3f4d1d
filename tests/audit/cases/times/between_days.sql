-- dialect: postgres
-- expect: RS404 at 6
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_ts::date, channel, count(*) from orders where order_ts between :start and :end group by 1, 2;
commit;
