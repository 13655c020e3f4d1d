-- dialect: postgres
-- expect: RS401 at 8
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders (order_date, region, order_count)
select o.order_date, s.region, count(*) from orders_fact o
join stores s
  on s.store_id = o.store_id and s.valid_to > current_date
where o.order_date between :start and :end group by 1, 2;
commit;
