-- dialect: postgres
-- expect: nothing
begin;
delete from order_events where event_ts >= :start and event_ts < :end;
insert into order_events (event_id, event_ts, status)
select event_id, event_ts, status from raw_events where event_ts >= :start and event_ts < :end;
commit;
