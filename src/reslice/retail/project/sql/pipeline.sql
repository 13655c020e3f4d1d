-- From order events to daily orders. Run once on an empty database; the views follow the events by themselves, and
-- only daily_orders is a table that has to be recomputed.

-- Events exactly as they arrive, repeats and mistakes included. Dates and instants are text here: a date that does not
-- exist must reach the views, which reject it by name. loaded_at is set by the loader.
CREATE TABLE order_events (
    event_id VARCHAR,
    order_id VARCHAR,
    order_date VARCHAR,
    channel VARCHAR,
    amount_cents BIGINT,
    source_version BIGINT,
    updated_at VARCHAR,
    loaded_at TIMESTAMPTZ NOT NULL
);

-- Repeats collapsed: one row per different payload of an event, known since it first arrived. An empty text is a
-- missing one.
CREATE VIEW event_payloads AS
SELECT
    nullif(event_id, '') AS event_id,
    nullif(order_id, '') AS order_id,
    nullif(order_date, '') AS order_date,
    nullif(channel, '') AS channel,
    amount_cents,
    source_version,
    nullif(updated_at, '') AS updated_at,
    count(*) AS arrivals,
    min(loaded_at) AS loaded_at
FROM order_events
GROUP BY ALL;

-- Each payload with its values read, and every reason why it cannot be used (an empty list when there is none). An
-- event without a version or an instant is rejected: what cannot be ordered must never win.
CREATE VIEW checked_events AS
WITH read_events AS (
    SELECT
        *,
        CASE WHEN regexp_full_match(order_date, '[0-9]{4}-[0-9]{2}-[0-9]{2}')
            THEN try_cast(order_date AS DATE) END AS order_day,
        CASE WHEN regexp_full_match(updated_at, '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z')
            THEN try_cast(updated_at AS TIMESTAMPTZ) END AS updated_instant
    FROM event_payloads
)
SELECT
    *,
    -- list_distinct drops the NULLs of the rules that hold.
    list_sort(list_distinct([
        CASE WHEN event_id IS NULL THEN 'event_id is missing' END,
        CASE WHEN order_id IS NULL THEN 'order_id is missing' END,
        CASE WHEN order_date IS NULL THEN 'order_date is missing'
            WHEN order_day IS NULL THEN 'order_date is no calendar date: ' || order_date END,
        CASE WHEN channel IS NULL THEN 'channel is missing' END,
        CASE WHEN amount_cents IS NULL THEN 'amount_cents is missing'
            WHEN amount_cents < 0 THEN 'amount_cents is negative: ' || amount_cents END,
        CASE WHEN source_version IS NULL THEN 'source_version is missing' END,
        CASE WHEN updated_at IS NULL THEN 'updated_at is missing'
            WHEN updated_instant IS NULL THEN 'updated_at is no UTC instant: ' || updated_at END
    ])) AS reasons
FROM read_events;

-- One event id must mean one thing: with different payloads nobody can say which is true, and none of them is used.
-- Events without an id cannot conflict; they are rejected one by one.
CREATE VIEW identified_events AS
SELECT *, CASE WHEN event_id IS NULL THEN 1 ELSE count(*) OVER (PARTITION BY event_id) END AS payloads
FROM checked_events;

-- What is left out, and why: one row per event with every reason.
CREATE VIEW rejected_events AS
SELECT
    event_id,
    max(payloads) AS payloads,
    array_to_string(list_sort(list_distinct(
        flatten(list(reasons))
        || [CASE WHEN max(payloads) > 1 THEN 'event_id has different payloads: ' || max(payloads) END]
    )), '; ') AS reasons
FROM identified_events
WHERE payloads > 1 OR len(reasons) > 0
GROUP BY
    event_id,
    CASE WHEN event_id IS NULL
        THEN row(order_id, order_date, channel, amount_cents, source_version, updated_at) END;

CREATE VIEW valid_events AS
SELECT event_id, order_id, order_day, channel, amount_cents, source_version, updated_instant
FROM identified_events
WHERE payloads = 1 AND len(reasons) = 0;

-- One winner per order: the highest version, then the latest instant, then the greatest event id (as text). Chosen
-- among ALL events of an order, before any date filter: a filter on the day first would hide the newer version of an
-- order that moved, and bring the stale one back to life on its old day.
CREATE VIEW current_events AS
SELECT *
FROM valid_events
QUALIFY row_number() OVER (
    PARTITION BY order_id
    ORDER BY source_version DESC NULLS LAST, updated_instant DESC NULLS LAST, event_id DESC
) = 1;

-- One row per order, as it stands now.
CREATE VIEW orders_fact AS
SELECT order_id, order_day AS order_date, channel, amount_cents, source_version, event_id
FROM current_events;

-- The right answer at any moment, at the grain of the target. Too slow for readers in real life; here it is the control.
CREATE VIEW daily_channel_mart AS
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
GROUP BY order_date, channel;

-- The persisted aggregate that readers use. It has no unique key, like many tables that were once only appended to:
-- the database will not stop a write that doubles it.
CREATE TABLE daily_orders (
    order_date DATE NOT NULL,
    channel VARCHAR NOT NULL,
    order_count BIGINT NOT NULL,
    amount_cents BIGINT NOT NULL
);
