-- dialect: bigquery
-- expect: nothing
begin transaction;
delete from shop.daily_orders where order_date between @start and @end;
insert into shop.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from shop.orders_fact
where order_date between @start and @end group by order_date, channel;
commit transaction;
