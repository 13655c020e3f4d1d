-- What each month must add up to, on another path than the source: households counted as pairs with their store, months
-- made from the parts of the local date, and cents rounded from the float itself.
WITH lines_by_month AS (
    SELECT
        make_date(
            year(timezone('America/New_York', sold_at)), month(timezone('America/New_York', sold_at)), 1
        ) AS sale_month,
        store_id,
        household_id,
        basket_id,
        CAST(round(sales_value * 100) AS BIGINT) AS cents
    FROM transaction_lines
)
SELECT
    sale_month,
    count(DISTINCT (store_id, household_id)) AS households,
    count(DISTINCT basket_id) AS baskets,
    count(*) AS lines,
    sum(cents) AS cents
FROM lines_by_month
WHERE sale_month BETWEEN :start AND :end
GROUP BY sale_month
