-- dialect: tsql
-- expect: RS101 at 5
select order_date, channel, count(*) as n into #daily_orders from dbo.orders_fact
where order_date = @day group by order_date, channel;
insert into dbo.daily_orders (order_date, channel, n) select order_date, channel, n from #daily_orders;
