-- dialect: tsql
-- expect: RS401 at 7
set xact_abort on;
begin transaction;
delete from dbo.daily_orders where order_date >= dateadd(day, -3, getdate());
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from dbo.orders_fact where order_date >= dateadd(day, -3, getdate()) group by order_date, channel;
commit transaction;
