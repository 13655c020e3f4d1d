-- dialect: mysql
-- expect: RS103 at 4
update daily_orders as t join late_orders as s on s.order_date = t.order_date
set t.amount_cents = t.amount_cents + s.amount_cents;
