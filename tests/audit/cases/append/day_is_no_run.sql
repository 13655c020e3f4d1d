-- dialect: tsql
-- expect: RS101 at 3
insert into dbo.daily_orders (snapshot_date, channel, order_count)
select @day, channel, count(*) from dbo.orders_fact where order_date = @day group by channel;
