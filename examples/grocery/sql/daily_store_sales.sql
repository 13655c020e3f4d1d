-- Sales per New York day and store, for the days from :start to :end, both included.
--
-- The range reaches the fact column as two instants, so that a day of 23 or 25 hours is read whole and no function
-- stands between the column and its statistics.
-- Amounts arrive as floats. Each line is rounded to cents as a DECIMAL before the sum: a sum of floats depends on the
-- order in which threads add them up, a sum of whole cents does not.
SELECT
    CAST(sold_at AT TIME ZONE 'America/New_York' AS DATE) AS sale_date,
    store_id,
    count(DISTINCT basket_id) AS baskets,
    count(*) AS lines,
    sum(CAST(100 * CAST(sales_value AS DECIMAL(12, 2)) AS BIGINT)) AS sales_cents
FROM transaction_lines
WHERE sold_at >= :start_instant AND sold_at < :end_instant
GROUP BY ALL
