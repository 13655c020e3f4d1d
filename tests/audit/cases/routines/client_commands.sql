-- dialect: postgres
-- expect: RS101 at 6
\set ON_ERROR_STOP on
\COPY orders FROM 'orders.csv' CSV HEADER

insert into daily_orders select order_date, count(*) from orders group by order_date;
\echo done
