-- dialect: postgres
-- expect: note RS402 at 6
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, currency, order_count)
select o.order_date, (select c.currency from channels c where c.channel = o.channel limit 1) as currency, count(*) from orders_fact o
where o.order_date between :start and :end group by 1, 2;
commit;
