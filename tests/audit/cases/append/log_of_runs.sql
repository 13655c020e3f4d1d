-- dialect: postgres
-- expect: note RS101 at 3
insert into load_log (job, rows_read, finished_at)
select 'daily_orders', count(*), now() from orders_fact;
