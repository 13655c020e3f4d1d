-- dialect: duckdb
-- expect: RS203 at 4
begin;
delete from daily_orders where true;
insert into daily_orders
select order_date, channel, count(*) as n from orders_fact
where order_date >= $start and order_date < $end group by order_date, channel;
commit;
