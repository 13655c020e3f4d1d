-- dialect: postgres
-- expect: unknown RS201 at 4
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select (order_ts at time zone 'America/New_York')::date, channel, count(*) from orders
where order_ts >= :start and order_ts < :end::date + interval '1 day' group by 1, 2;
commit;
