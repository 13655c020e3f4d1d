-- dialect: postgres
-- expect: note RS403 at 4
insert into order_events (event_id, event_ts, status)
select event_id, event_ts, status from raw_events where event_ts > (select max(event_ts) from order_events)
on conflict (event_id) do nothing;
