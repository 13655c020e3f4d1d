-- dialect: snowflake
-- expect: RS301 at 5, RS304 at 5
begin;
delete from daily_orders where (order_date, channel) in (select order_date, nullif(channel, '') from staged);
insert into daily_orders select order_date, nullif(channel, ''), count(*) from staged group by 1, 2;
commit;
