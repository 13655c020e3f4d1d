-- dialect: tsql
-- expect: RS201 at 9
create procedure dbo.load_daily_orders @start date, @end date
as
begin
  set nocount on;
  set xact_abort on;
  begin transaction;
  delete from dbo.daily_orders where order_date between @start and @end;
  insert into dbo.daily_orders (order_date, channel, order_count)
  select cast(order_ts as date), channel, count(*) from dbo.orders
  where order_ts >= @start and order_ts < @end group by cast(order_ts as date), channel;
  commit transaction;
end
