-- dialect: postgres
-- expect: nothing
update parent_award set direct_count = t.direct_count
from (select p.id, count(*) as direct_count from awards as p join awards as c on c.parent_id = p.id group by p.id) as t
where t.id = award_id;

with totals as (select award_id, sum(amount) as amount from subawards group by award_id)
update rpt.awards as mine set amount = totals.amount
from rpt.awards as other left outer join totals on totals.award_id = other.id
where other.id = mine.id;
