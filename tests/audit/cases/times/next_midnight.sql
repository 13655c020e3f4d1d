-- dialect: redshift
-- expect: RS201 at 4
begin;
delete from daily_orders where order_date >= '{{ ds }}' and order_date < '{{ tomorrow_ds }}';
insert into daily_orders (order_date, channel, order_count)
select trunc(order_ts), channel, count(*) from orders
where order_ts between '{{ ds }}' and '{{ tomorrow_ds }}' group by 1, 2;
commit;
