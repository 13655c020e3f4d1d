-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from (
  select order_id, order_date, channel,
    row_number() over (partition by order_id order by updated_at desc) as place
  from order_versions
) as v
where place = 1 and order_date between :start and :end group by 1, 2;
commit;
