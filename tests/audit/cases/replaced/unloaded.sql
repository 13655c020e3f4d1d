-- dialect: redshift
-- expect: nothing
drop table if exists orders_of_the_day;
create table orders_of_the_day as
select order_date, channel, count(*) as order_count from orders_fact where order_date = '{{ ds }}' group by 1, 2;
unload ('select * from orders_of_the_day') to 's3://bucket/orders/' iam_role default;
