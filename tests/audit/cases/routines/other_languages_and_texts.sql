-- dialect: postgres
-- expect: nothing
create function g() returns int as $$ return plpy.execute("insert into t select count(*) from s") $$ language plpython3u;
select $$insert into daily_orders select count(*) from orders$$;
