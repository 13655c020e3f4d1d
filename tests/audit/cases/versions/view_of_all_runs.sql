-- dialect: snowflake
-- expect: RS406 at 4
create table daily_orders (order_date date, channel text, batch_id number, n number, primary key (order_date, channel, batch_id));
create or replace view channel_totals as select channel, sum(n) as n from daily_orders group by channel;
