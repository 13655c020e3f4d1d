-- dialect: mysql
-- expect: RS301 at 3, note RS403 at 5
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where order_date >= (select max(order_date) from daily_orders) - interval 3 day group by 1, 2
on duplicate key update order_count = values(order_count);
