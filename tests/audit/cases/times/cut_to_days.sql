-- dialect: snowflake
-- expect: nothing
begin transaction;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select to_date(order_ts), channel, count(*) from orders where to_date(order_ts) between :start and :end group by 1, 2;
commit;
