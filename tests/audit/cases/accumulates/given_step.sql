-- dialect: postgres
-- expect: note RS103 at 3
update accounts set balance_cents = balance_cents + %(amount)s where account_id = %(account)s;
