-- dialect: tsql
-- expect: nothing
set xact_abort on;
begin transaction;
truncate table dbo.daily_orders;
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from dbo.orders_fact group by order_date, channel;
commit transaction;
