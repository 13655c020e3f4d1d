-- dialect: bigquery
-- expect: note RS101 at 3
insert into daily_orders_versions (batch, order_date, order_count)
select '{{ run_id }}', order_date, count(*) from orders_fact where order_date = '{{ ds }}' group by order_date;
