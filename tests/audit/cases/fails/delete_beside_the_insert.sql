-- dialect: postgres
-- expect: RS102 at 4
create table daily_orders (order_date date, channel text, n bigint, primary key (order_date, channel));
with gone as (delete from daily_orders where order_date between :start and :end)
insert into daily_orders select order_date, channel, count(*) from orders_fact
where order_date between :start and :end group by order_date, channel;
