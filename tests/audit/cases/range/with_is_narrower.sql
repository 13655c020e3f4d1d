-- dialect: snowflake
-- expect: RS201 at 4
begin transaction;
delete from daily_orders where order_date between :start_date and :end_date;
insert into daily_orders (order_date, channel, order_count)
with recent as (
  select to_date(order_ts) as order_date, channel from orders
  where order_ts >= dateadd(day, 1, :start_date) and order_ts < dateadd(day, 1, :end_date)
)
select order_date, channel, count(*) as order_count from recent group by 1, 2;
commit;
