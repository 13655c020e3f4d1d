-- dialect: postgres
-- expect: unknown RS101 at 3
insert into stg_daily select order_date, channel, count(*) from orders_fact group by order_date, channel;
