-- dialect: postgres
-- expect: RS103 at 5
create table profiles (customer_id bigint primary key, words text not null);
insert into profiles as p select customer_id, words from updates
on conflict (customer_id) do update set words = p.words || excluded.words;
