-- dialect: postgres
-- expect: RS103 at 8
with new as (
  select l.user_id, count(*) as n from listens as l join users as u on u.user_id = l.user_id
  where l.created > u.counted_until and l.created <= :until
  group by l.user_id
)
update users as old set n = old.n + new.n from new where old.user_id = new.user_id;
