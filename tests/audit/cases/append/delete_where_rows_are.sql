-- dialect: tsql
-- expect: note RS202 at 8
begin transaction;
if exists (select 1 from dbo.daily_orders where order_date = @day)
begin
  delete from dbo.daily_orders where order_date = @day
end
insert into dbo.daily_orders
select order_date, channel, count(*) from dbo.orders_fact where order_date = @day group by order_date, channel;
commit;
