-- dialect: snowflake
-- expect: note RS101 at 3
insert into daily_orders_versions (load_id, order_date, order_count)
select uuid_string(), order_date, count(*) from orders_fact group by order_date;
