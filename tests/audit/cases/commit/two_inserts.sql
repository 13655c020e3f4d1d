-- dialect: postgres
-- expect: RS202 at 3
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_date, 'web', count(*) from web_orders where order_date between :start and :end group by 1;
insert into daily_orders (order_date, channel, order_count)
select order_date, 'store', count(*) from store_orders where order_date between :start and :end group by 1;
