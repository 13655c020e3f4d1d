-- expect: unknown RS101 at 2
INSERT INTO ${destination_table}
SELECT wiki, day, SUM(views) AS views FROM ${source_table} WHERE day = '${day}' GROUP BY wiki, day;
