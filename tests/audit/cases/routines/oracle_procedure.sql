-- dialect: oracle
-- expect: RS101 at 5
create or replace procedure load_daily(p_day in date) is
begin
  insert into daily_orders select order_date, count(*) from orders where order_date = p_day group by order_date;
  commit;
end load_daily;
/
