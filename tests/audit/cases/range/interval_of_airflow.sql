-- dialect: postgres
-- expect: RS201 at 4
begin;
delete from daily_orders where order_date between '{{ ds }}' and '{{ data_interval_end | ds }}';
insert into daily_orders (order_date, channel, order_count)
select created_at::date, channel, count(*) from orders
where created_at >= '{{ data_interval_start }}' and created_at < '{{ data_interval_end }}' group by 1, 2;
commit;
