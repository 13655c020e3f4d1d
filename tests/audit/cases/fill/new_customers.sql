-- dialect: snowflake
-- expect: nothing
merge into customers as t using updates as s on t.customer_id = s.customer_id
when not matched then insert (customer_id, name) values (s.customer_id, s.name);
