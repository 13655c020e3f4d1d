-- dialect: postgres
-- expect: RS203 at 4
begin;
delete from daily_orders;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact
where order_date = '{{ ds }}' group by order_date, channel;
commit;
