-- dialect: bigquery
-- expect: nothing
create or replace table `shop.daily_orders_{{ ds_nodash }}` as
select channel, count(*) as order_count from shop.orders where order_date = '{{ ds }}' group by channel;
