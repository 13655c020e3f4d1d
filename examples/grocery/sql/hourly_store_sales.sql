-- Sales per hour of the stores' clocks and store, for the hours from :start to :end, both included.
--
-- The hour is an instant, because on 2017-11-05 the clock shows 01:00 twice. time_bucket keeps the two apart;
-- DuckDB's date_trunc('hour', ...) takes both for the later one.
SELECT
    time_bucket(INTERVAL 1 HOUR, sold_at) AS sale_hour,
    store_id,
    count(DISTINCT basket_id) AS baskets,
    count(*) AS lines,
    sum(CAST(100 * CAST(sales_value AS DECIMAL(12, 2)) AS BIGINT)) AS sales_cents
FROM transaction_lines
WHERE sold_at >= :start_instant AND sold_at < :end_instant
GROUP BY ALL
