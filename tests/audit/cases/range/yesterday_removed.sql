-- dialect: mysql
-- expect: RS201 at 4
start transaction;
delete from daily_orders where order_date = '{{ yesterday_ds }}';
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = '{{ ds }}' group by 1, 2;
commit;
