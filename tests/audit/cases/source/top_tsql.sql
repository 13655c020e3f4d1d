-- dialect: tsql
-- expect: RS402 at 6
set xact_abort on; begin transaction;
delete from dbo.top_channels where order_date = @day;
insert into dbo.top_channels (order_date, channel, order_count)
select top 3 order_date, channel, count(*) from dbo.orders_fact where order_date = @day group by order_date, channel;
commit transaction;
