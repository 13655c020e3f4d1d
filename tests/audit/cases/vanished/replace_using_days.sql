-- dialect: databricks
-- expect: note RS301 at 3
insert into daily_orders replace using (order_date)
select order_date, channel, count(*) as n from orders_fact where order_date = :day group by order_date, channel;
