-- dialect: tsql
-- expect: nothing
insert into #daily select order_date, count(*) from dbo.orders_fact where order_date = @day group by order_date;
select * from #daily;
