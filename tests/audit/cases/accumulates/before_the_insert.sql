-- dialect: postgres
-- expect: RS103 at 5
with s as (select order_date, count(*) as n from orders_fact where order_date = :day group by order_date),
changed as (
  update daily_orders as d set n = d.n + s.n from s where d.order_date = s.order_date returning d.order_date
)
insert into daily_orders select order_date, n from s where order_date not in (select order_date from changed);
