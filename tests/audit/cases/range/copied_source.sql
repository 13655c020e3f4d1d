-- dialect: postgres
-- expect: unknown RS201 at 4
begin;
delete from daily_orders where order_date between :start and :end;
insert into daily_orders select order_date, channel, order_count, amount_cents from computed_orders;
commit;
