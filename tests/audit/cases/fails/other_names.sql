-- dialect: duckdb
-- expect: RS102 at 4
create table daily_orders (day date, way varchar, n bigint, unique (day, way));
insert into daily_orders (day, way, n) select order_date, channel, count(*) from orders_fact group by order_date, channel;
