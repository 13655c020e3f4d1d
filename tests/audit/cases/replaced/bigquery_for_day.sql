-- dialect: bigquery
-- expect: RS205 at 3
create or replace table shop.daily_orders as
select date(order_ts) as order_date, channel, count(*) as order_count from shop.orders
where date(order_ts) = '{{ ds }}' group by 1, 2;
