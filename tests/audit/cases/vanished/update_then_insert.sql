-- dialect: postgres
-- expect: RS301 at 6
begin;
update daily_orders as d set n = s.n from (select order_date, count(*) as n from orders_fact group by 1) as s
where d.order_date = s.order_date;
insert into daily_orders select s.order_date, s.n from (select order_date, count(*) as n from orders_fact group by 1) as s
where not exists (select 1 from daily_orders as d where d.order_date = s.order_date);
commit;
