-- dialect: postgres
-- expect: RS103 at 5
insert into seen as t (customer_id, first_at, visits) select customer_id, min(at), count(*) from visits group by 1
on conflict (customer_id) do update set first_at = least(t.first_at, excluded.first_at),
  visits = t.visits + excluded.visits;
