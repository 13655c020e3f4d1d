-- dialect: postgres
-- expect: RS101 at 5
begin;
delete from daily_orders where order_date < current_date - 400;
insert into daily_orders select order_date, count(*) from orders_fact where order_date = :day group by order_date;
commit;
