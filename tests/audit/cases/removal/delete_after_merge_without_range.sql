-- dialect: snowflake
-- expect: RS302 at 9
begin;
create or replace temporary table today as
select order_date, channel, count(*) as n from orders_fact where order_date between :start and :end group by 1, 2;
merge into daily_orders as t using today as s on t.order_date = s.order_date and t.channel = s.channel
when matched then update set n = s.n
when not matched then insert (order_date, channel, n) values (s.order_date, s.channel, s.n);
delete from daily_orders as d where not exists (
  select 1 from today as s where s.order_date = d.order_date and s.channel = d.channel
);
commit;
