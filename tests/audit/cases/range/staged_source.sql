-- dialect: postgres
-- expect: nothing
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders select order_date, channel, order_count, amount_cents from stg_daily_orders;
commit;
