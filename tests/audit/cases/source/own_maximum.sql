-- dialect: postgres
-- expect: RS403 at 6
begin;
delete from daily_orders where order_date > (select max(order_date) from daily_orders);
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date > (select max(order_date) from daily_orders) group by 1, 2;
commit;
