-- dialect: snowflake
-- expect: RS301 at 6
create or replace temporary table today as select order_date, channel, count(*) as n from orders_fact group by 1, 2;
begin;
delete from daily_orders where (order_date, channel) in (select order_date, channel from today);
insert into daily_orders select * from today;
commit;
