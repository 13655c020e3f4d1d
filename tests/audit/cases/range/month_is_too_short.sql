-- dialect: duckdb
-- expect: RS201 at 4
begin;
delete from monthly_orders where order_month = $month;
insert into monthly_orders
select date_trunc('month', order_date) as order_month, channel, count(*) as n from orders_fact
where order_date >= $month and order_date < $month::date + interval 27 day group by all;
commit;
