-- dialect: postgres
-- expect: RS103 at 8
do $$
declare r record;
begin
  for r in select id, n from changes where day = :'day'
  loop
    update totals set n = totals.n + r.n where totals.id = r.id;
  end loop;
end
$$;
