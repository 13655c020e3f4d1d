-- dialect: snowflake
-- expect: nothing
create or replace table daily_orders_new like daily_orders;
insert into daily_orders_new select order_date, channel, count(*) from orders_fact group by order_date, channel;
alter table daily_orders_new swap with daily_orders;
drop table daily_orders_new;
