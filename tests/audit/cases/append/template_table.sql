-- dialect: bigquery
-- expect: RS101 at 3
insert into `{{ params.dataset }}.daily_orders`
select order_date, count(*) from orders_fact where order_date = '{{ ds }}' group by order_date;
