-- dialect: postgres
-- expect: nothing
begin;
create temporary table span as select cast(:start as date) as first_day, cast(:end as date) as last_day;
delete from daily_orders using span where order_date between span.first_day and span.last_day;
insert into daily_orders select o.order_date, o.channel, count(*) from orders_fact as o
join span on o.order_date between span.first_day and span.last_day group by o.order_date, o.channel;
commit;
