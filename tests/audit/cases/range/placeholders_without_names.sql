-- dialect: duckdb
-- expect: nothing
begin;
delete from daily_orders where order_date between ? and ?;
insert into daily_orders
select order_date, channel, count(*) as n from orders_fact where order_date between ? and ? group by all;
commit;
