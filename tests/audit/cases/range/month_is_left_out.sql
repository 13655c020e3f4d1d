-- dialect: mysql
-- expect: RS201 at 4
start transaction;
delete from daily_orders where year(order_date) = :year and month(order_date) = :month;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where year(order_date) = :year group by 1, 2;
commit;
