-- dialect: databricks
-- expect: nothing
insert into order_events replace where event_date between :start and :end
select event_id, event_date, amount_cents from raw_events
where event_date between :start and :end
qualify row_number() over (partition by event_id order by ingested_at desc) = 1;
