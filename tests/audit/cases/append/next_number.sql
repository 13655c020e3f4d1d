-- dialect: mysql
-- expect: nothing
insert into batches (batch_id, started_by) select coalesce(max(batch_id), 0) + 1, %s from batches;
