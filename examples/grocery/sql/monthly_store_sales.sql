-- Sales per New York month and store, for the months from :start to :end, both included. A household that comes twice
-- in a month is one, so a month is no sum of its days.
SELECT
    CAST(date_trunc('month', sold_at AT TIME ZONE 'America/New_York') AS DATE) AS sale_month,
    store_id,
    count(DISTINCT household_id) AS households,
    count(DISTINCT basket_id) AS baskets,
    count(*) AS lines,
    sum(CAST(100 * CAST(sales_value AS DECIMAL(12, 2)) AS BIGINT)) AS sales_cents
FROM transaction_lines
WHERE sold_at >= :start_instant AND sold_at < :end_instant
GROUP BY ALL
