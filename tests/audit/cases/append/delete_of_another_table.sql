-- dialect: postgres
-- expect: RS101 at 5
begin;
delete from weekly_orders where order_date = :day;
insert into daily_orders select order_date, count(*) from orders_fact where order_date = :day group by order_date;
commit;
