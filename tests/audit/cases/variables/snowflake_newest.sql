-- dialect: snowflake
-- expect: RS403 at 7
set newest = (select max(order_date) from daily_orders);
begin transaction;
delete from daily_orders where order_date >= $newest;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date >= $newest group by 1, 2;
commit;
