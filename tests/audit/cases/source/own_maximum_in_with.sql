-- dialect: snowflake
-- expect: RS403 at 6
insert into daily_orders (order_date, channel, order_count)
with mark as (select max(order_date) as newest from daily_orders)
select o.order_date, o.channel, count(*) from orders_fact o cross join mark
where o.order_date > mark.newest group by 1, 2;
