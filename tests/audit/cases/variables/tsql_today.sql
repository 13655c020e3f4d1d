-- dialect: tsql
-- expect: RS401 at 8
set xact_abort on;
declare @day date = dateadd(day, -1, getdate());
begin transaction;
delete from dbo.daily_orders where order_date = @day;
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from dbo.orders_fact where order_date = @day group by order_date, channel;
commit transaction;
