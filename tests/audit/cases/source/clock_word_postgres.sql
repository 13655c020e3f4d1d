-- dialect: postgres
-- expect: RS401 at 6
begin;
delete from daily_orders where order_date = 'yesterday'::date;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = 'yesterday'::date group by 1, 2;
commit;
