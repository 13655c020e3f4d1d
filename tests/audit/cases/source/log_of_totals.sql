-- dialect: postgres
-- expect: note RS101 at 3
insert into table_sizes (measured_at, rows)
select now() as moment, count(*) from orders_fact;
