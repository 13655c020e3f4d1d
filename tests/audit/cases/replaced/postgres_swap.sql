-- dialect: postgres
-- expect: nothing
create table daily_orders_new as
select order_date, channel, count(*) as order_count from orders_fact group by order_date, channel;
begin;
alter table daily_orders rename to daily_orders_old;
alter table daily_orders_new rename to daily_orders;
commit;
