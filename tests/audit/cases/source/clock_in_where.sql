-- dialect: postgres
-- expect: RS401 at 6
begin;
delete from daily_orders where order_date = current_date - 1;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = current_date - 1 group by 1, 2;
commit;
