-- dialect: postgres
-- expect: nothing
create temp table today (order_date date, channel text, order_count bigint) on commit drop;
insert into today select order_date, channel, count(*) from orders_fact where order_date = :day group by 1, 2;
select * from today;
