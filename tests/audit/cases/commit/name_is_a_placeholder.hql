-- expect: RS202 at 4

-- the dialect is told by the suffix, and the table by whoever runs it
DELETE FROM ${destination_table} WHERE day = TO_DATE('${day}');

INSERT INTO ${destination_table}
SELECT day, wiki, SUM(views) AS views
FROM ${source_table}
WHERE day = TO_DATE('${day}')
GROUP BY day, wiki;
