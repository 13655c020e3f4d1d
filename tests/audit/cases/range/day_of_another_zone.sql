-- dialect: bigquery
-- expect: unknown RS201 at 4
begin transaction;
delete from shop.daily_orders where order_date between @start and @end;
insert into shop.daily_orders (order_date, channel, order_count)
select date(order_ts, 'America/New_York'), channel, count(*) from shop.orders
where order_ts >= timestamp(@start) and order_ts < timestamp(date_add(@end, interval 1 day)) group by 1, 2;
commit transaction;
