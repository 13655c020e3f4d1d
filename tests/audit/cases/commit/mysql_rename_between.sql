-- dialect: mysql
-- expect: RS202 at 4
start transaction;
delete from daily_orders where order_date = '2026-01-01';
rename table orders_new to orders_fact;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = '2026-01-01' group by 1, 2;
commit;
