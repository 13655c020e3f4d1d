-- dialect: redshift
-- expect: nothing
create table daily_orders_copy as select * from daily_orders limit 0;
