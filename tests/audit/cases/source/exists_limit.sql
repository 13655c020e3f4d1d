-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders;
insert into daily_orders
select order_date, channel, count(*) from orders_fact o
where exists (select 1 from channels c where c.channel = o.channel limit 1) group by 1, 2;
commit;
