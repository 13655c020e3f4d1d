-- dialect: tsql
-- expect: RS104 at 4
if not exists (select 1 from dbo.daily_orders where order_date = @day)
  insert into dbo.daily_orders
  select order_date, count(*) from dbo.orders_fact where order_date = @day group by order_date;
