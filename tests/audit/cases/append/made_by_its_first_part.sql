-- dialect: redshift
-- expect: nothing
drop table if exists mart.daily_orders;
create table mart.daily_orders as select order_date, 'web' as way, count(*) as n from web_orders group by order_date;
insert into mart.daily_orders select order_date, 'shop', count(*) from shop_orders group by order_date;
