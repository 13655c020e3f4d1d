-- dialect: snowflake
-- expect: RS301 at 3
merge into customer_totals as t
using (select customer_id, customer_name, sum(amount_cents) as a from orders_fact group by customer_id, customer_name) as s
on t.customer_id = s.customer_id
when matched then update set a = s.a
when not matched then insert (customer_id, customer_name, a) values (s.customer_id, s.customer_name, s.a);
