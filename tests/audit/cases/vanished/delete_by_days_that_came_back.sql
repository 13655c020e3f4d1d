-- dialect: postgres
-- expect: note RS301 at 6
begin;
create temporary table today as select order_date, channel, count(*) as n from orders_fact where order_date = :day group by 1, 2;
delete from daily_orders where order_date in (select order_date from today);
insert into daily_orders select * from today;
commit;
