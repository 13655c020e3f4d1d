-- dialect: postgres
-- expect: RS204 at 4
begin;
truncate daily_orders;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact group by order_date, channel;
commit;
