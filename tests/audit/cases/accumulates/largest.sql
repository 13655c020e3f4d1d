-- dialect: postgres
-- expect: nothing
insert into seen as t (customer_id, last_at) select customer_id, at from visits
on conflict (customer_id) do update set last_at = greatest(t.last_at, excluded.last_at);
