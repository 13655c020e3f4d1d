-- dialect: starrocks
-- expect: RS301 at 4
create table daily_orders (d date, channel varchar(10), n int) primary key (d, channel) distributed by hash(d);
insert into daily_orders select d, channel, count(*) from orders_fact group by d, channel;
