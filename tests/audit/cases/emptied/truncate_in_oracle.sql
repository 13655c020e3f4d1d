-- dialect: oracle
-- expect: RS204 at 3
truncate table daily_orders;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact group by order_date, channel;
commit;
