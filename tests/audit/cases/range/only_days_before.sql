-- dialect: postgres
-- expect: nothing
begin;
delete from stock_daily where snapshot_date = :day;
insert into stock_daily (snapshot_date, sku, quantity)
select :day, sku, sum(quantity) from movements where moved_at < :day::date + interval '1 day' group by sku;
commit;
