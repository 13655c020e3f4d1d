-- The days that events since :since (an instant) touch: for every order whose day, channel or amount is not what it
-- was, the day it stood in and the day it stands in now. An order that moves touches two days.
--
-- "Since" is decided by loaded_at, when an event arrived. An event that arrives late often carries an old updated_at,
-- and a search by updated_at would miss it. A load still under way at :since may commit rows with an earlier loaded_at:
-- ask from a little before.
WITH events_then AS (
    SELECT *, count(*) OVER (PARTITION BY event_id) AS payloads
    FROM checked_events
    WHERE loaded_at <= :since
),
-- The rule of current_events, over what had arrived by then. A conflict found since takes an event out of today's
-- winners, so conflicts are counted afresh too.
orders_then AS (
    SELECT order_id, order_day AS order_date, channel, amount_cents
    FROM events_then
    WHERE len(reasons) = 0 AND payloads = 1
    QUALIFY row_number() OVER (
        PARTITION BY order_id
        ORDER BY source_version DESC NULLS LAST, updated_instant DESC NULLS LAST, event_id DESC
    ) = 1
),
changed AS (
    SELECT before.order_date AS day_before, now.order_date AS day_now
    FROM orders_then AS before
    FULL JOIN orders_fact AS now ON now.order_id = before.order_id
    WHERE before.order_date IS DISTINCT FROM now.order_date
        OR before.channel IS DISTINCT FROM now.channel
        OR before.amount_cents IS DISTINCT FROM now.amount_cents
)
SELECT day_before AS order_date FROM changed WHERE day_before IS NOT NULL
UNION
SELECT day_now AS order_date FROM changed WHERE day_now IS NOT NULL
