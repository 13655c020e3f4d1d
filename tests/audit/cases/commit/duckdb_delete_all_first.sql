-- dialect: duckdb
-- expect: RS202 at 3
delete from daily_orders;
insert into daily_orders
select order_date, channel, count(*) as order_count from orders_fact group by order_date, channel;
