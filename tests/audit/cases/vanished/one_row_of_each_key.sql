-- dialect: snowflake
-- expect: note RS301 at 3
merge into customers as t
using (select customer_id, max(name) as name from customer_changes group by customer_id) as s
on t.customer_id = s.customer_id
when matched then update set name = s.name
when not matched then insert (customer_id, name) values (s.customer_id, s.name);
