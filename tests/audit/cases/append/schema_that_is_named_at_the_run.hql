-- expect: RS101 at 2
INSERT INTO ${schema}.daily_views
SELECT wiki, day, SUM(views) AS views FROM ${source_table} WHERE day = '${day}' GROUP BY wiki, day;
