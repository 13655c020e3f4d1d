-- dialect: postgres
-- expect: nothing
create table profiles (customer_id bigint primary key, attributes jsonb not null);
insert into profiles as p select customer_id, attributes from updates
on conflict (customer_id) do update set attributes = p.attributes || excluded.attributes;
