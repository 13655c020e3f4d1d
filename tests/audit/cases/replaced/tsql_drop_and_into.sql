-- dialect: tsql
-- expect: RS205 at 4
drop table if exists dbo.daily_orders;
select order_date, channel, count(*) as order_count into dbo.daily_orders from dbo.orders_fact
where order_date between @start and @end group by order_date, channel;
