-- dialect: bigquery
-- expect: RS101 at 3
insert into shop.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from shop.orders_fact
where order_date between @start and @end group by order_date, channel;
