-- dialect: duckdb
-- expect: nothing
begin;
delete from daily_orders where order_date = $day;
insert into daily_orders
select $day::date as order_date, channel, count(*) as n from orders
where order_ts >= $day::date and order_ts < $day::date + 1 group by channel;
commit;
