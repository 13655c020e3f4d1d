-- dialect: duckdb
-- expect: nothing
create table orders (order_id bigint, order_time date, channel varchar);
begin;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders
select order_time as order_date, channel, count(*) as n from orders
where order_time between '2026-01-01' and '2026-01-31' group by all;
commit;
