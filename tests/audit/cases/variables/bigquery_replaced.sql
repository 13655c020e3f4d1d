-- dialect: bigquery
-- expect: RS205 at 5
declare start_date date default '2026-01-01';
declare end_date date default '2026-01-31';
create or replace table shop.daily_orders as
select order_date, channel, count(*) as order_count from shop.orders_fact
where order_date between start_date and end_date group by 1, 2;
