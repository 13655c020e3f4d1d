-- dialect: bigquery
-- expect: RS404 at 7
begin transaction;
delete from shop.daily_orders where order_date between @start_date and @end_date;
insert into shop.daily_orders (order_date, channel, order_count)
select date(created_at), channel, count(*) from shop.orders
where created_at between timestamp(@start_date) and timestamp(@end_date) group by 1, 2;
commit transaction;
