-- dialect: redshift
-- expect: RS202 at 4
begin;
delete from daily_orders where order_date between :start and :end;
truncate staged_orders;
insert into staged_orders select * from orders_fact where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from staged_orders group by order_date, channel;
commit;
