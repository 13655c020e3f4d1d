-- dialect: bigquery
-- expect: nothing

-- nothing is done with a row that is found, so no row of the table is changed twice
merge into flows as r
using (
  select flow_id, channel, array_agg(event order by event_time) as events from pings
  where day > date_sub(@day, interval 3 day) group by flow_id, channel
) as f
on r.flow_id = f.flow_id
when not matched then insert (flow_id, channel, events) values (f.flow_id, f.channel, f.events)
when not matched by source and r.day > date_sub(@day, interval 3 day) then delete;
