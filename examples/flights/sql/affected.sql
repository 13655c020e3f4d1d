-- The days that corrections since :since touch: where the flight stood, and where it stands now, if it still does.
SELECT day_before AS flight_date
FROM flight_corrections
WHERE corrected_at >= :since
UNION
SELECT day_after
FROM flight_corrections
WHERE corrected_at >= :since AND day_after IS NOT NULL
