-- dialect: postgres
-- expect: nothing
begin;
delete from latest_orders;
insert into latest_orders select distinct on (order_id) order_id, order_date, status from order_versions order by order_id, version desc;
commit;
