-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between '2025-12-01' and '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_archive where order_date between '2025-12-01' and '2025-12-31' group by 1, 2
union all
select order_date, channel, count(*) from orders_fact where order_date between '2026-01-01' and '2026-01-31' group by 1, 2;
commit;
