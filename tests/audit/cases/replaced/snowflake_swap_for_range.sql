-- dialect: snowflake
-- expect: RS205 at 3
create or replace table daily_orders_new as
select order_date, channel, count(*) as order_count from orders_fact
where order_date between :start and :end group by order_date, channel;
alter table daily_orders swap with daily_orders_new;
