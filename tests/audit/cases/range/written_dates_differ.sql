-- dialect: redshift
-- expect: RS201 at 4
begin;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where order_date >= '2026-01-01' and order_date <= '2026-02-01' group by 1, 2;
commit;
