-- dialect: mysql
-- expect: note RS204 at 3
truncate table stage_orders;
insert into stage_orders select order_id, order_date, channel from raw_orders;
