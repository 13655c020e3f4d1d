-- dialect: snowflake
-- expect: nothing
begin transaction;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact
where order_date >= '2020-01-01' and order_date between :start and :end group by 1, 2;
commit;
