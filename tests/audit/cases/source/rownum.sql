-- dialect: oracle
-- expect: RS402 at 5
delete from top_channels where order_date = date '2026-01-01';
insert into top_channels (order_date, channel)
select order_date, channel from orders_fact where order_date = date '2026-01-01' and rownum <= 3;
commit;
