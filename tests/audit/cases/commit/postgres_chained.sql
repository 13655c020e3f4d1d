-- dialect: postgres
-- expect: nothing
begin;
delete from old_orders where order_date < '2020-01-01';
commit and chain;
delete from daily_orders where order_date = :day;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = :day group by 1, 2;
commit;
