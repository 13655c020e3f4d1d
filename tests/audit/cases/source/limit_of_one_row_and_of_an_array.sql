-- dialect: bigquery
-- expect: nothing
create or replace table sessions as
select
  user_id,
  (select value.int_value from unnest(event_params) where key = 'session' limit 1) as session_id,
  array_agg((select as struct category, name limit 100) order by event_time) as events
from events
group by user_id, session_id;
