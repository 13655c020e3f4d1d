-- dialect: tsql
-- expect: RS101 at 8
begin transaction;
if @is_full = 1
begin
  delete from dbo.daily_orders where order_date = @day;
end;
insert into dbo.daily_orders
select order_date, channel, count(*) from dbo.orders_fact where order_date = @day group by order_date, channel;
commit;
