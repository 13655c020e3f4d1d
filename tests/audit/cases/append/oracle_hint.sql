-- dialect: oracle
-- expect: RS101 at 3
insert /*+ append */ into daily_orders (order_date, channel, order_count)
select trunc(ordered_at), channel, count(*) from orders_fact
where ordered_at >= :first_day and ordered_at < :day_after group by trunc(ordered_at), channel;
commit;
