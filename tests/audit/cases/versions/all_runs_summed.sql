-- dialect: postgres
-- expect: RS406 at 8
create table daily_orders (order_date date, channel text, run_id bigint, n bigint, primary key (order_date, channel, run_id));
begin;
delete from monthly_orders where month = date '2026-01-01';
insert into monthly_orders (month, order_count)
select date_trunc('month', order_date)::date, sum(n)
from daily_orders
where order_date >= '2026-01-01' and order_date < '2026-02-01' group by 1;
commit;
