-- dialect: redshift
-- expect: RS103 at 3
update daily_orders set amount_cents = daily_orders.amount_cents + s.amount_cents
from (select order_date, sum(amount_cents) as amount_cents from late_orders group by order_date) as s
where daily_orders.order_date = s.order_date;
