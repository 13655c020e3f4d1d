-- dialect: redshift
-- expect: nothing
begin;
delete from daily_orders where order_date between '2026-01-01' and '2026-01-31';
insert into daily_orders (order_date, channel, order_count)
select d.calendar_date, f.channel, count(*) from orders_fact f join dim_date d on d.date_key = f.date_key
where f.date_key between 20260101 and 20260131 group by 1, 2;
commit;
