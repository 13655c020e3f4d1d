-- What each day must add up to, on another path than the source: no stores, days chosen by the local calendar date
-- of each line (not by instants), and cents rounded from the float itself.
WITH lines_by_day AS (
    SELECT
        CAST(timezone('America/New_York', sold_at) AS DATE) AS sale_date,
        basket_id,
        CAST(round(sales_value * 100) AS BIGINT) AS cents
    FROM transaction_lines
)
SELECT
    sale_date,
    count(DISTINCT basket_id) AS baskets,
    count(*) AS lines,
    sum(cents) AS cents
FROM lines_by_day
WHERE sale_date BETWEEN :start AND :end
GROUP BY sale_date
