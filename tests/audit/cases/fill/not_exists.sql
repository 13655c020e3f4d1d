-- dialect: tsql
-- expect: RS104 at 3
insert into dbo.daily_orders (order_date, order_count)
select s.order_date, count(*) from dbo.orders_fact as s
where not exists (select 1 from dbo.daily_orders as t where t.order_date = s.order_date)
group by s.order_date;
