-- dialect: oracle
-- expect: nothing
delete from daily_orders where order_date between date '2026-01-01' and date '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where order_date between date '2026-01-01' and date '2026-01-31' group by order_date, channel;
commit;
