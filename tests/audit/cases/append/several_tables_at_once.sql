-- dialect: snowflake
-- expect: RS101 at 4
insert all
  into daily_orders (order_date, order_count) values (order_date, order_count)
select order_date, count(*) as order_count from orders_fact group by order_date;
