-- dialect: duckdb
-- expect: RS201 at 4
begin;
delete from daily_orders where order_date between $start and $end;
insert into daily_orders
select cast(order_ts as date) as order_date, channel, count(*) as n from orders
where order_ts >= $start and order_ts < $end group by all;
commit;
