-- dialect: postgres
-- expect: nothing
begin;
create temporary table today as
select order_date, channel, count(*) as n from orders_fact where order_date between :start and :end group by 1, 2;
insert into daily_orders select * from today on conflict (order_date, channel) do update set n = excluded.n;
delete from daily_orders as d where d.order_date between :start and :end and not exists (
  select 1 from today as s where s.order_date = d.order_date and s.channel = d.channel
);
commit;
