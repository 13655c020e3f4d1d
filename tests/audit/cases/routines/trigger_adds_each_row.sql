-- dialect: postgres
-- expect: nothing

-- a trigger runs once for each row that is written, and not again
create function count_row() returns trigger as $$
begin
  update totals set n = n + 1 where id = new.id;
  return new;
end;
$$ language plpgsql;
