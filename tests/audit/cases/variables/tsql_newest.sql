-- dialect: tsql
-- expect: RS403 at 8
set xact_abort on;
declare @newest date = (select max(order_date) from dbo.daily_orders);
begin transaction;
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from dbo.orders_fact
where order_date > @newest group by order_date, channel;
commit transaction;
