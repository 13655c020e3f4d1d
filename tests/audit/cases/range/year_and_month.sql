-- dialect: postgres
-- expect: nothing
begin;
delete from monthly_orders where extract(year from month) = 2026 and extract(month from month) = 3;
insert into monthly_orders (month, channel, order_count)
select date_trunc('month', order_ts)::date, channel, count(*) from orders
where order_ts >= '2026-03-01' and order_ts < '2026-04-01' group by 1, 2;
commit;
