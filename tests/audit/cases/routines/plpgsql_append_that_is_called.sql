-- dialect: postgres
-- expect: RS101 at 9
create or replace function load_daily(d date) returns void as $body$
declare
  n int := 0;
begin
  raise notice 'day %; begin', d;
  -- the rows of the day
  insert into daily_orders select order_date, count(*) from orders where order_date = d group by order_date;
  get diagnostics n = row_count;
end;
$body$ language plpgsql;

select load_daily('2026-01-02');
