-- dialect: postgres
-- expect: RS303 at 3
update days as d set amount_cents = s.amount_cents
from (select order_date, channel, sum(amount_cents) as amount_cents from orders_fact group by 1, 2) as s
where d.order_date = s.order_date;
