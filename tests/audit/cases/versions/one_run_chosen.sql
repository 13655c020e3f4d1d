-- dialect: snowflake
-- expect: nothing
create table daily_orders (order_date date, channel text, batch_id number, n number, primary key (order_date, channel, batch_id));
create or replace table channel_totals as
with newest as (
  select * from daily_orders qualify row_number() over (partition by order_date order by batch_id desc) = 1
)
select channel, sum(n) as n from newest group by channel;
