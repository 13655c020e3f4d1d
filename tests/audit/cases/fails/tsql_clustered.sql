-- dialect: tsql
-- expect: RS102 at 7
create table dbo.daily_orders (
  order_date date not null, channel varchar(20) not null, order_count int not null,
  constraint daily_orders_key primary key clustered (order_date asc, channel asc)
);
insert into dbo.daily_orders (order_date, channel, order_count)
select order_date, channel, count(*) from dbo.orders_fact group by order_date, channel;
