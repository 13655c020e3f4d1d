-- dialect: snowflake
-- expect: RS202 at 13
create or replace procedure load_daily(d date)
returns string
language sql
execute as caller
as
$$
declare
  n int default 0;
begin
  -- each statement of it commits by itself
  delete from daily_orders where order_date = :d;
  insert into daily_orders select order_date, count(*) from orders where order_date = :d group by order_date;
  n := sqlrowcount;
  return 'ok';
end;
$$;

call "LOAD_DAILY"(current_date - 1);
