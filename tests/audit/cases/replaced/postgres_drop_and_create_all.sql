-- dialect: postgres
-- expect: nothing
begin;
drop table daily_orders;
create table daily_orders as
select order_date, channel, count(*) as order_count from orders_fact group by order_date, channel;
commit;
