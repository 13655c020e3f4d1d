-- dialect: trino
-- expect: RS101 at 3
insert into daily_orders
select order_date, 'web', count(*) from web_orders group by order_date
union all
select order_date, 'store', count(*) from store_orders group by order_date;
