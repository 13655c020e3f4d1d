-- The New York months that corrections since :since touch: where the basket stood, and where it stands now.
SELECT CAST(date_trunc('month', sold_at_before AT TIME ZONE 'America/New_York') AS DATE) AS sale_month
FROM basket_corrections
WHERE corrected_at >= :since
UNION
SELECT CAST(date_trunc('month', sold_at_after AT TIME ZONE 'America/New_York') AS DATE) AS sale_month
FROM basket_corrections
WHERE corrected_at >= :since
