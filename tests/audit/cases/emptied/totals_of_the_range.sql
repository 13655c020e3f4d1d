-- dialect: mysql
-- expect: RS204 at 3
truncate table channel_totals;
insert into channel_totals (channel, order_count)
select channel, count(*) from orders_fact where order_date between :start and :end group by channel;
