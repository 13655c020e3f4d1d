-- dialect: mysql
-- expect: RS405 at 6
start transaction;
delete from latest_orders;
insert into latest_orders (order_id, order_date, amount_cents)
select v.order_id, v.order_date, v.amount_cents from order_versions v join (select order_id, max(version) as version from order_versions where status = 'paid' group by order_id) m
  on m.order_id = v.order_id and m.version = v.version;
commit;
