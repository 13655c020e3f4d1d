-- dialect: snowflake
-- expect: RS201 at 4
begin transaction;
delete from daily_orders where order_date between date_trunc('month', :day) and last_day(:day);
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where order_date >= date_trunc('month', :day) and order_date < last_day(:day) group by 1, 2;
commit;
