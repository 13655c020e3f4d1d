-- dialect: tsql
-- expect: RS402 at 7
set xact_abort on; begin transaction;
delete from dbo.latest_orders where order_date = @day;
insert into dbo.latest_orders (order_date, order_id, status)
select order_date, order_id, status from (
  select order_date, order_id, status, row_number() over (partition by order_id order by (select null)) as n from dbo.order_versions
) as v where n = 1 and order_date = @day;
commit transaction;
