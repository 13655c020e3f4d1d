-- dialect: mysql
-- expect: RS401 at 5
start transaction;
delete from top_channels where order_date = :day;
insert into top_channels (order_date, channel, order_count) select order_date, channel, count(*) from orders_fact where order_date = :day group by 1, 2 order by rand() limit 3;
commit;
