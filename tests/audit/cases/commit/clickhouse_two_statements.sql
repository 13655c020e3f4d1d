-- dialect: clickhouse
-- expect: RS202 at 3
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders
select order_date, channel, count(), sum(amount_cents) from orders_fact
where order_date between '2026-01-01' and '2026-01-31' group by order_date, channel;
