-- dialect: postgres
-- expect: nothing
begin;
truncate staging_orders;
insert into staging_orders select * from orders_fact where order_date between :start and :end;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from staging_orders group by order_date, channel;
commit;
