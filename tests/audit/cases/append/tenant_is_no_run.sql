-- dialect: postgres
-- expect: RS101 at 3
insert into daily_orders
select :tenant as tenant, order_date, count(*) from orders_fact where tenant = :tenant group by order_date;
