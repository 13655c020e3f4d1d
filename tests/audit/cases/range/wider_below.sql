-- dialect: duckdb
-- expect: nothing
begin;
delete from daily_orders where order_date between $start and $end;
insert into daily_orders
with wide as (
  select order_date, channel, count(*) as n from orders_fact
  where order_date between $start::date - 6 and $end::date group by all
)
select order_date, channel, n from wide where order_date between $start and $end;
commit;
