-- dialect: postgres
-- expect: nothing
begin;
delete from hourly_orders where hour_ts between :start_ts and :end_ts;
insert into hourly_orders (hour_ts, channel, order_count)
select hour_ts, channel, count(*) from orders where hour_ts between :start_ts and :end_ts group by 1, 2;
commit;
