-- dialect: postgres
-- expect: RS402 at 7
begin;
delete from top_channels where order_date = :day;
insert into top_channels (order_date, channel, order_count)
select order_date, channel, count(*) from orders_fact where order_date = :day
group by 1, 2 limit 3;
commit;
