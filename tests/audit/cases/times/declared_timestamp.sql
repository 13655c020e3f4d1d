-- dialect: duckdb
-- expect: RS404 at 8
create table orders (order_id bigint, ordered timestamp, channel varchar);
begin;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders
select ordered::date as order_date, channel, count(*) as n from orders
where ordered >= '2026-01-01' and ordered <= '2026-01-31' group by all;
commit;
