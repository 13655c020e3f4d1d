-- dialect: redshift
-- expect: RS401 at 6
begin;
delete from daily_stock where stock_date = :day;
insert into daily_stock (stock_date, channel, items)
select current_date as stock_date, channel, count(*) from stock group by channel;
commit;
