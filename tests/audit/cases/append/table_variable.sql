-- dialect: tsql
-- expect: nothing
declare @today table (order_date date, order_count int);
insert into @today select order_date, count(*) from dbo.orders_fact where order_date = @day group by order_date;
select * from @today;
