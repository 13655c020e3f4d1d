-- dialect: tsql
-- expect: RS104 at 5
if not exists (select 1 from etl.load_log where table_name = 'daily_orders' and load_date = @day)
begin
  insert into dbo.daily_orders
  select order_date, channel, count(*) from dbo.orders_fact where order_date = @day group by order_date, channel;
  insert into etl.load_log values ('daily_orders', @day);
end
