-- dialect: snowflake
-- expect: nothing
begin transaction;
truncate table daily_orders;
insert into daily_orders
select order_date, channel, count(*), sum(amount_cents) from orders_fact group by order_date, channel;
commit;
