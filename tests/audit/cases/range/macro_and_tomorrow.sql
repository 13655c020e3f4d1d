-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date >= '{{ ds }}' and order_date < '{{ macros.ds_add(ds, 1) }}';
insert into daily_orders (order_date, channel, order_count)
select order_ts::date, channel, count(*) from orders
where order_ts >= '{{ ds }}' and order_ts < '{{ tomorrow_ds }}' group by 1, 2;
commit;
