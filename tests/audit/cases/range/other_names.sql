-- dialect: postgres
-- expect: unknown RS201 at 4
begin;
delete from daily_orders where order_date between :from_date and :to_date;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date between :start and :end group by order_date, channel;
commit;
