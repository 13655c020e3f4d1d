-- dialect: mysql
-- expect: RS101 at 6
create table daily_orders (
  id bigint not null auto_increment primary key, order_date date not null, order_count int not null
);
insert ignore into daily_orders (order_date, order_count)
select order_date, count(*) from orders_fact group by order_date;
