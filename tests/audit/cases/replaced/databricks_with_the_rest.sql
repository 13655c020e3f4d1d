-- dialect: databricks
-- expect: nothing
create or replace table daily_orders as
select order_date, channel, count(*) as order_count from orders_fact
where order_date between :start and :end group by order_date, channel
union all
select order_date, channel, order_count from daily_orders where not order_date between :start and :end;
