-- dialect: postgres
-- expect: RS101 at 3
with totals as (
  select order_date, count(*) as n from orders_fact where order_date between :start and :end group by order_date
)
-- every day of the calendar gets a row
insert into daily_orders
select c.day, coalesce(t.n, 0) from calendar as c left join totals as t on t.order_date = c.day
where c.day between :start and :end;
