-- dialect: redshift
-- expect: RS403 at 5
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where order_date > (select coalesce(max(order_date), '1900-01-01') from daily_orders) group by 1, 2;
