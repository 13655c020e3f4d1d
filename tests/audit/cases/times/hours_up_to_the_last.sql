-- dialect: duckdb
-- expect: RS201 at 4
begin;
delete from hourly_orders where order_hour between $start and $end;
insert into hourly_orders
select date_trunc('hour', order_ts) as order_hour, count(*) as n from orders where order_ts between $start and $end group by all;
commit;
