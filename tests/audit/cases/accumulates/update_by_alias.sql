-- dialect: tsql
-- expect: RS103 at 3
update d set amount_cents = d.amount_cents + s.amount_cents
from dbo.daily_orders as d join dbo.late_orders as s on s.order_date = d.order_date;
