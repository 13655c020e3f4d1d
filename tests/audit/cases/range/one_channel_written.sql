-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between :start and :end and channel = 'web';
insert into daily_orders (order_date, channel, order_count)
select order_date, 'web', count(*) from web_orders where order_date between :start and :end group by 1;
commit;
