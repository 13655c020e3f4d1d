-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date in (select order_date from days_to_renew);
insert into daily_orders select order_date, channel, count(*) from orders_fact
where order_date in (select order_date from days_to_renew) group by order_date, channel;
commit;
