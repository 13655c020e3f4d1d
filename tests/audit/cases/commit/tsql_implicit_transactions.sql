-- dialect: tsql
-- expect: nothing
set implicit_transactions on;
set xact_abort on;
delete from dbo.daily_orders where order_date = @day;
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from dbo.orders_fact where order_date = @day group by order_date, channel;
commit;
