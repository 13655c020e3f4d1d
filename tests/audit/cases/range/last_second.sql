-- dialect: mysql
-- expect: nothing
set autocommit = 0;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select date(order_ts), channel, count(*) from orders
where order_ts >= '2026-01-01' and order_ts < date_add('2026-01-31', interval 1 day) group by 1, 2;
commit;
