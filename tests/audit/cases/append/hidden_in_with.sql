-- dialect: postgres
-- expect: RS101 at 4
with added as (
  insert into daily_orders select order_date, count(*) from orders_fact group by order_date returning 1
)
select count(*) from added;
