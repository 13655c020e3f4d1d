-- dialect: bigquery
-- expect: nothing
declare start_date date default '2026-01-01';
declare end_date date default '2026-01-31';
begin transaction;
delete from shop.daily_orders where order_date between start_date and end_date;
insert into shop.daily_orders (order_date, channel, order_count)
select date(order_ts), channel, count(*) from shop.orders
where order_ts >= timestamp(start_date) and order_ts < timestamp(date_add(end_date, interval 1 day)) group by 1, 2;
commit transaction;
