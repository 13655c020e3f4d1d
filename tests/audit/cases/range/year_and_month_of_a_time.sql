-- dialect: mysql
-- expect: nothing
start transaction;
delete from daily_orders where year(order_date) = :year and month(order_date) = :month;
insert into daily_orders (order_date, channel, order_count)
select date(order_ts), channel, count(*) from orders where year(order_ts) = :year and month(order_ts) = :month group by 1, 2;
commit;
