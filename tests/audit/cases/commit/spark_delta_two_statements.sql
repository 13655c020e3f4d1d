-- dialect: databricks
-- expect: RS202 at 3
delete from daily_orders where order_date between :start and :end;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date between :start and :end group by order_date, channel;
