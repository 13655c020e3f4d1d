-- dialect: duckdb
-- expect: nothing
begin;
delete from stock_counts where snapshot_ts = $snapshot;
insert into stock_counts select snapshot_ts, channel, count(*) as n from stock where snapshot_ts = $snapshot group by all;
commit;
