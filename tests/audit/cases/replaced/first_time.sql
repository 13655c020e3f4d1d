-- dialect: postgres
-- expect: nothing
create table if not exists daily_orders as
select order_date, channel, count(*) as order_count from orders_fact
where order_date between :start and :end group by order_date, channel;
