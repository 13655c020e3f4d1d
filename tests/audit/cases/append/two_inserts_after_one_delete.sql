-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date = :day;
insert into daily_orders select order_date, 'web', count(*) from web_orders where order_date = :day group by order_date;
insert into daily_orders select order_date, 'shop', count(*) from shop_orders where order_date = :day group by order_date;
commit;
