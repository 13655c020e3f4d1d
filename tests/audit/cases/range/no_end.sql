-- dialect: tsql
-- expect: RS201 at 5
set xact_abort on;
begin transaction;
delete from dbo.daily_orders where order_date >= @start;
insert into dbo.daily_orders (order_date, channel, order_count)
select cast(order_ts as date), channel, count(*) from dbo.orders
where order_ts >= @start and order_ts < dateadd(day, 1, @end) group by cast(order_ts as date), channel;
commit transaction;
