-- dialect: postgres
-- expect: RS201 at 4
begin;
delete from daily_orders where order_date >= :start and order_date < :end;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date between :start and :end group by order_date, channel;
commit;
