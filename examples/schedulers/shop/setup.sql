-- The shop's database: orders as they came in, and a table for each target.
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, ordered_at TIMESTAMPTZ, channel VARCHAR, amount_cents BIGINT);
CREATE TABLE daily_orders (order_date DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT);
CREATE TABLE weekly_orders (week DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT);
CREATE TABLE monthly_orders (month DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT);
CREATE TABLE new_york_orders (order_date DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT);

INSERT INTO orders VALUES
    -- around the week that begins on Monday, 5 January
    ( 1, '2026-01-04 23:30:00+00', 'web',   1000),
    ( 2, '2026-01-05 00:00:00+00', 'web',   2000),
    ( 3, '2026-01-05 12:00:00+00', 'store',  500),
    ( 4, '2026-01-05 12:30:00+00', 'web',    700),
    ( 5, '2026-01-06 06:30:00+00', 'web',    300),
    ( 6, '2026-01-11 23:59:59+00', 'store',  400),
    ( 7, '2026-01-12 00:00:00+00', 'web',    900),
    ( 8, '2026-02-01 00:00:00+00', 'web',    600),
    -- the last and first seconds around 8 March in New York, a day of 23 hours
    ( 9, '2026-03-08 04:59:59+00', 'web',    110),
    (10, '2026-03-08 05:00:00+00', 'web',    120),
    (11, '2026-03-09 03:59:59+00', 'web',    130),
    (12, '2026-03-09 04:00:00+00', 'web',    140),
    -- and around 1 November, a day of 25
    (13, '2026-11-01 03:59:59+00', 'store',  150),
    (14, '2026-11-01 04:00:00+00', 'store',  160),
    (15, '2026-11-02 04:59:59+00', 'store',  170),
    (16, '2026-11-02 05:00:00+00', 'store',  180);
