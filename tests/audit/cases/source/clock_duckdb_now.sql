-- dialect: duckdb
-- expect: RS401 at 6
begin;
delete from daily_orders where order_date between $start and $end;
insert into daily_orders
select order_date, channel, sum(case when due_at < now() then 1 else 0 end) as overdue from orders_fact
where order_date between $start and $end group by all;
commit;
