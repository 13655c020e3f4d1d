-- dialect: duckdb
-- expect: nothing
begin;
delete from daily_orders;
insert into daily_orders
select order_date, channel, count(*) as n from orders_fact
where order_date >= '2020-01-01' group by order_date, channel;
commit;
