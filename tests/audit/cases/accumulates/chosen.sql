-- dialect: snowflake
-- expect: nothing
merge into customers as t using updates as s on t.customer_id = s.customer_id
when matched then update set t.seen = case when s.seen > t.seen then s.seen else t.seen end
when not matched then insert (customer_id, seen) values (s.customer_id, s.seen);
