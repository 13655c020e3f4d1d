-- dialect: snowflake
-- expect: nothing
alter session set autocommit = false;
delete from daily_orders where order_date = :day;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = :day group by 1, 2;
commit;
