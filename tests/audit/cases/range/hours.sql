-- dialect: postgres
-- expect: RS201 at 4
begin;
delete from hourly_orders where hour_ts >= :start and hour_ts < :end;
insert into hourly_orders (hour_ts, channel, order_count)
select date_trunc('hour', order_ts), channel, count(*) from orders
where date_trunc('hour', order_ts) between :start and :end group by 1, 2;
commit;
