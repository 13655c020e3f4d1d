-- dialect: bigquery
-- expect: RS203 at 3
truncate table shop.daily_orders;
insert into shop.daily_orders (order_date, channel, order_count)
select date(order_ts) as order_date, channel, count(*) from shop.orders
where date(order_ts) = @run_date group by 1, 2;
