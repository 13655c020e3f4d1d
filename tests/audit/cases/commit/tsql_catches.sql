-- dialect: tsql
-- expect: nothing
begin try
  begin transaction;
  delete from dbo.daily_orders where order_date between @start and @end;
  insert into dbo.daily_orders (order_date, channel, order_count)
  select order_date, channel, count(*) from dbo.orders_fact
  where order_date between @start and @end group by order_date, channel;
  commit transaction;
end try
begin catch
  if @@trancount > 0 rollback transaction;
  throw;
end catch
