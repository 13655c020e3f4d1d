-- dialect: postgres
-- expect: unknown RS103 at 4
insert into profiles as p select customer_id, attributes from updates
on conflict (customer_id) do update set attributes = p.attributes || excluded.attributes;
