-- dialect: redshift
-- expect: RS301 at 7, RS304 at 7
begin;
create temporary table today as
select order_date, channel, count(*) as n from orders_fact where order_date = :day group by rollup (order_date, channel);
delete from daily_orders using today where daily_orders.order_date = today.order_date and daily_orders.channel = today.channel;
insert into daily_orders select * from today;
commit;
