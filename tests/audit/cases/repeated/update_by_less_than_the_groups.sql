-- dialect: postgres
-- expect: RS303 at 3
update parent_award set direct_count = t.direct_count
from (select p.id, p.type, count(*) as direct_count from awards as p join awards as c on c.parent_id = p.id group by p.id, p.type) as t
where t.id = award_id;
