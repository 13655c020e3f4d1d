-- dialect: tsql
-- expect: RS404 at 6
set xact_abort on; begin transaction;
delete from dbo.daily_orders where order_date = @day;
insert into dbo.daily_orders (order_date, channel, order_count)
select cast(order_ts as date), channel, count(*) from dbo.orders where order_ts = @day group by cast(order_ts as date), channel;
commit transaction;
