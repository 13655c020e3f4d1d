-- dialect: redshift
-- expect: RS301 at 6
begin;
create temporary table today as select order_date, channel, count(*) as n from orders_fact group by 1, 2;
delete from daily_orders using today where daily_orders.order_date = today.order_date and daily_orders.channel = today.channel;
insert into daily_orders select * from today;
commit;
