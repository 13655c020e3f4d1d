-- dialect: bigquery
-- expect: nothing
begin transaction;
delete from shop.daily_orders where order_date between @start and @end;
insert into shop.daily_orders (order_date, channel, order_count)
select date(order_ts, 'America/New_York'), channel, count(*) from shop.orders
where date(order_ts, 'America/New_York') between @start and @end group by 1, 2;
commit transaction;
