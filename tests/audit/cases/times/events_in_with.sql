-- dialect: databricks
-- expect: RS404 at 5
insert into daily_orders replace where order_date between '2026-01-01' and '2026-01-31'
with recent as (
  select * from orders where event_time >= '2026-01-01' and event_time <= '2026-01-31'
)
select to_date(event_time) as order_date, channel, count(*) from recent group by 1, 2;
