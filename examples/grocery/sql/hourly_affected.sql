-- The hours that corrections since :since touch: where the basket stood, and where it stands now.
SELECT time_bucket(INTERVAL 1 HOUR, sold_at_before) AS sale_hour
FROM basket_corrections
WHERE corrected_at >= :since
UNION
SELECT time_bucket(INTERVAL 1 HOUR, sold_at_after) AS sale_hour
FROM basket_corrections
WHERE corrected_at >= :since
