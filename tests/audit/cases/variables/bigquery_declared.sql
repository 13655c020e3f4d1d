-- dialect: bigquery
-- expect: RS201 at 6
declare start_date date default '2026-01-01';
declare end_date date default '2026-01-31';
begin transaction;
delete from shop.daily_orders where order_date >= start_date and order_date < end_date;
insert into shop.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from shop.orders_fact where order_date between start_date and end_date group by 1, 2;
commit transaction;
