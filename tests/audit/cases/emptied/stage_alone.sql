-- dialect: snowflake
-- expect: nothing
begin;
truncate table stg_orders;
insert into stg_orders select order_id, order_date, channel from raw_orders where order_date between :start and :end;
commit;
