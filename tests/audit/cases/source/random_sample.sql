-- dialect: duckdb
-- expect: RS401 at 7
begin;
delete from daily_orders where order_date between $start and $end;
insert into daily_orders
select order_date, channel, count(*) as n from orders_fact
where order_date between $start and $end and random() < 0.1 group by all;
commit;
