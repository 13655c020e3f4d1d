-- dialect: postgres
-- expect: nothing
\set ON_ERROR_STOP on
begin;
delete from agg_events where event_date = :day and event_hour = :hour;
insert into agg_events (event_date, event_hour, n)
select event_ts::date, extract(hour from event_ts), count(*) from events
where event_ts::date = :day and extract(hour from event_ts) = :hour group by 1, 2;
commit;
