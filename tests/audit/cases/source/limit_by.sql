-- dialect: clickhouse
-- expect: RS402 at 4
insert overwrite latest_orders
select order_id, status from order_versions limit 1 by order_id;
