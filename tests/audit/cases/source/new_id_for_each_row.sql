-- dialect: postgres
-- expect: note RS401 at 6
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (row_id, order_date, channel, order_count)
select gen_random_uuid() as row_id, order_date, channel, n from (
  select order_date, channel, count(*) as n from orders_fact where order_date between :start and :end group by 1, 2) as counted;
commit;
