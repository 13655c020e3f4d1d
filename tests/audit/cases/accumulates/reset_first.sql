-- dialect: postgres
-- expect: nothing
begin;
update daily_orders set amount_cents = 0 where order_date = :day;
update daily_orders as d set amount_cents = d.amount_cents + s.amount_cents
from (select order_date, sum(amount_cents) as amount_cents from orders_fact group by 1) as s
where d.order_date = s.order_date and d.order_date = :day;
commit;
