-- dialect: postgres
-- expect: nothing
-- insert into daily_orders select order_date, count(*) from orders_fact group by 1;
select 'insert into daily_orders select order_date, count(*) from orders_fact group by 1';
