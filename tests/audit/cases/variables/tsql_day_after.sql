-- dialect: tsql
-- expect: nothing
set xact_abort on;
declare @start date = '2026-01-01', @end date = '2026-01-31';
declare @after date = dateadd(day, 1, @end);
begin transaction;
delete from dbo.daily_orders where order_date between @start and @end;
insert into dbo.daily_orders (order_date, channel, order_count)
select cast(order_ts as date), channel, count(*) from dbo.orders
where order_ts >= @start and order_ts < @after group by cast(order_ts as date), channel;
commit transaction;
