-- dialect: duckdb
-- expect: RS101 at 3
insert into rollups select 'month', date_trunc('month', day), sum(n) from rollups where level = 'day' group by 2;
