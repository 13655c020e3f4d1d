-- dialect: postgres
-- expect: nothing
with gone as (
  delete from daily_orders where order_date between :start and :end
)
insert into daily_orders
select order_date, channel, count(*) from orders_fact
where order_date between :start and :end group by order_date, channel;
