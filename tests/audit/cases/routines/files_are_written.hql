-- expect: nothing
insert overwrite directory '${directory}' using csv options ('sep' '\t', 'header' 'true')
select wiki, sum(views) from pageviews where day = '${day}' group by wiki;

with daily as (select wiki, views from pageviews where day = '${day}')
insert overwrite directory '${directory}'
using csv options ('compression' 'none')
select wiki, sum(views) from daily group by wiki;
