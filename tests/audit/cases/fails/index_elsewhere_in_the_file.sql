-- dialect: postgres
-- expect: RS102 at 5
create table daily_orders (order_date date not null, channel text not null, order_count bigint not null);
create unique index daily_orders_key on daily_orders (order_date, channel);
insert into daily_orders select order_date, channel, count(*) from orders_fact group by order_date, channel;
