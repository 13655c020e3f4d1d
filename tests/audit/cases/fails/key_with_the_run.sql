-- dialect: postgres
-- expect: note RS101 at 6
create table daily_orders_versions (
  run_id bigint, order_date date, order_count bigint, primary key (run_id, order_date)
);
insert into daily_orders_versions (run_id, order_date, order_count)
select :run_id, order_date, count(*) from orders_fact group by order_date;
