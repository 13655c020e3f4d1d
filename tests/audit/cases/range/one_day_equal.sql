-- dialect: mysql
-- expect: nothing
start transaction;
delete from daily_orders where order_date = '{{ ds }}';
insert into daily_orders (order_date, channel, order_count)
select date(order_ts), channel, count(*) from orders
where order_ts >= '{{ ds }}' and order_ts < date_add('{{ ds }}', interval 1 day) group by 1, 2;
commit;
