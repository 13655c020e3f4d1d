-- dialect: snowflake
-- expect: nothing
create or replace table orders_of_the_day as
select order_date, channel, count(*) as order_count from orders_fact where order_date = :day group by 1, 2;
call export_orders();
drop table orders_of_the_day;
