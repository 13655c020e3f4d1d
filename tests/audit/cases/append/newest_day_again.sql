-- dialect: postgres
-- expect: RS101 at 3, RS403 at 5
insert into daily_orders
select order_date, channel, count(*) from orders_fact
where order_date >= (select max(order_date) from daily_orders) group by order_date, channel;
