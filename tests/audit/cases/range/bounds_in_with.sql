-- dialect: redshift
-- expect: nothing
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
with bounds as (select :start as first_day, :end as last_day)
select o.order_date, o.channel, count(*) from orders_fact o cross join bounds b
where o.order_date between b.first_day and b.last_day group by 1, 2;
commit;
