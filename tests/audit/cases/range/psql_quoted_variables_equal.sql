-- dialect: postgres
-- expect: nothing
begin;
delete from :"table" where order_date between :'start' and :'end';
-- psql puts a value in quotes for :'start', and a name for :"table"
insert into :"table" select order_date, count(*) from orders where order_date between :'start' and :'end' group by 1;
commit;
