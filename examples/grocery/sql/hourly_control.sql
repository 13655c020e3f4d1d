-- What each hour must add up to, on another path than the source: no stores, hours counted in seconds since 1970, and
-- cents rounded from the float itself.
WITH lines_by_hour AS (
    SELECT
        to_timestamp(3600 * (CAST(floor(epoch(sold_at)) AS BIGINT) // 3600)) AS sale_hour,
        basket_id,
        CAST(round(sales_value * 100) AS BIGINT) AS cents
    FROM transaction_lines
)
SELECT
    sale_hour,
    count(DISTINCT basket_id) AS baskets,
    count(*) AS lines,
    sum(cents) AS cents
FROM lines_by_hour
WHERE sale_hour BETWEEN :start AND :end
GROUP BY sale_hour
