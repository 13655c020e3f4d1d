-- dialect: tsql
-- expect: RS101 at 3
with daily as (
  select order_date, channel, count(*) as order_count from dbo.orders_fact group by order_date, channel
)
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, order_count from daily;
