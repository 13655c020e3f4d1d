-- dialect: duckdb
-- expect: RS201 at 4
begin;
delete from daily_orders where order_date between '2026-01-31' and '2026-01-01';
insert into daily_orders
select order_date, channel, count(*) as n from orders_fact where order_date between '2026-01-01' and '2026-01-31' group by all;
commit;
