-- dialect: postgres
-- expect: nothing
update order_lines set total_cents = price_cents * quantity where order_date = :day;
