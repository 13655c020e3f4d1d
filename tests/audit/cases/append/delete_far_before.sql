-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date = :day;
create temporary table today as select * from orders_fact where order_date = :day;
analyze today;
insert into daily_orders select order_date, channel, count(*) from today group by order_date, channel;
commit;
