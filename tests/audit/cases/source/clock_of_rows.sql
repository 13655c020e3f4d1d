-- dialect: postgres
-- expect: nothing
insert into order_events (event_id, event_ts, received_at)
select event_id, event_ts, now() from raw_events where event_ts >= current_date - 1
on conflict (event_id) do nothing;
