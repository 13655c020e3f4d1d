-- dialect: postgres
-- expect: note RS404 at 7
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_ts::date, channel, count(*) from orders
where order_ts between :start and :end || ' 23:59:59' group by 1, 2;
commit;
