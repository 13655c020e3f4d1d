-- dialect: databricks
-- expect: note RS201 at 3
insert into daily_orders replace where order_date >= :start and order_date < :end
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date between :start and :end group by order_date, channel;
