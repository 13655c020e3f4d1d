-- dialect: postgres
-- expect: nothing

-- a procedure that does not commit is one transaction
create procedure reporting.refresh(p_from date, p_to date)
language plpgsql
as $procedure$
begin
  if p_from is null then
    raise exception 'no ''from''; given';
  elsif p_to is null then
    p_to := current_date;
  end if;
  delete from daily_orders where order_date between p_from and p_to;
  insert into daily_orders
  select order_date, count(*) from orders where order_date between p_from and p_to group by order_date;
exception when others then
  raise;
end;
$procedure$;
