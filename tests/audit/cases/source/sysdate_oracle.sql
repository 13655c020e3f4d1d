-- dialect: oracle
-- expect: RS401 at 5
delete from daily_orders where order_date = trunc(sysdate) - 1;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = trunc(sysdate) - 1 group by order_date, channel;
commit;
