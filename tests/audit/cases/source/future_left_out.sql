-- dialect: databricks
-- expect: nothing
insert into daily_orders replace where order_date between :start and :end
select order_date, channel, count(*) from orders_fact
where order_date between :start and :end and order_date < current_date() group by order_date, channel;
