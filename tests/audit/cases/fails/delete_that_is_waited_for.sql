-- dialect: postgres
-- expect: nothing
create table daily_orders (order_date date, channel text, n bigint, primary key (order_date, channel));
with gone as (delete from daily_orders where order_date between :start and :end returning order_date)
insert into daily_orders select order_date, channel, count(*) from orders_fact
where order_date between :start and :end and (select count(*) from gone) >= 0 group by order_date, channel;
