-- dialect: clickhouse
-- expect: nothing
insert overwrite latest_orders
select order_id, status from order_versions order by order_id, version desc limit 1 by order_id;
