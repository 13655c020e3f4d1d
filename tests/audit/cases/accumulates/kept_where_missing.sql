-- dialect: postgres
-- expect: nothing
insert into customers as c (customer_id, name) select customer_id, name from updates
on conflict (customer_id) do update set name = coalesce(excluded.name, c.name);
