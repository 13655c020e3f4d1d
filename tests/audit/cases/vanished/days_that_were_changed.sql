-- dialect: snowflake
-- expect: nothing
begin;
delete from daily_orders using changed_days as c where daily_orders.order_date = c.order_date;
insert into daily_orders
select o.order_date, o.channel, count(*) from orders_fact as o join changed_days as c on c.order_date = o.order_date
group by o.order_date, o.channel;
commit;
