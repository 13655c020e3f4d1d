-- dialect: postgres
-- expect: nothing
insert into daily_orders_versions (run_id, order_date, n)
select :run_id, order_date, count(*) from orders_fact where order_date = :day group by order_date
on conflict (run_id, order_date) do nothing;
