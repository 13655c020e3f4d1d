-- dialect: oracle
-- expect: RS103 at 3
update daily_orders d set amount_cents = amount_cents + (
  select sum(s.amount_cents) from late_orders s where s.order_date = d.order_date
);
