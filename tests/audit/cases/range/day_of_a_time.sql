-- dialect: duckdb
-- expect: nothing
begin;
delete from daily_orders where order_date between $start and $end;
insert into daily_orders
select cast(order_ts as date) as order_date, channel, count(*) as n from orders
where cast(order_ts as date) between cast($start as date) and cast($end as date) group by all;
commit;
