-- dialect: postgres
-- expect: note RS101 at 3
insert into daily_orders_versions
select :run_id as run_id, order_date, channel, count(*) from orders_fact
where order_date between :start and :end group by order_date, channel;
