-- dialect: bigquery
-- expect: RS104 at 3
insert into daily_orders
select order_date, count(*) from orders_fact
where order_date not in (select order_date from daily_orders) group by order_date;
