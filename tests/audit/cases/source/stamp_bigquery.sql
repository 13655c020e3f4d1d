-- dialect: bigquery
-- expect: nothing
begin transaction;
delete from shop.daily_orders where order_date between @start and @end;
insert into shop.daily_orders (order_date, channel, order_count, run_id, load_ts)
select order_date, channel, count(*), generate_uuid() as run_id, current_timestamp() as load_ts
from shop.orders_fact where order_date between @start and @end group by 1, 2;
commit transaction;
