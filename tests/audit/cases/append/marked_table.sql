-- dialect: postgres
-- expect: RS101 at 3
insert into {table} select order_date, count(*) from orders_fact where order_date = %(day)s group by order_date;
