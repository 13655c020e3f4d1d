-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date >= :start and order_date < :end;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where :start <= order_date and :end > order_date group by order_date, channel;
commit;
