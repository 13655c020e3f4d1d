-- dialect: postgres
-- expect: RS205 at 5
begin;
drop table daily_orders;
create table daily_orders as
select order_date, channel, count(*) as order_count from orders_fact
where order_date >= :start and order_date < :end group by order_date, channel;
commit;
