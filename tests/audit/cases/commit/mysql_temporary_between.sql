-- dialect: mysql
-- expect: nothing
start transaction;
delete from daily_orders where order_date between :start and :end;
create temporary table staged_orders as select * from orders_fact where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from staged_orders group by order_date, channel;
drop temporary table staged_orders;
commit;
