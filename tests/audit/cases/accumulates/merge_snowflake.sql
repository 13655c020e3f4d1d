-- dialect: snowflake
-- expect: RS103 at 6
merge into daily_orders as t
using (select order_date, sum(amount_cents) as amount_cents from orders_fact where order_date = :day group by 1) as s
on t.order_date = s.order_date
when matched then update set t.amount_cents = t.amount_cents + s.amount_cents
when not matched then insert (order_date, amount_cents) values (s.order_date, s.amount_cents);
