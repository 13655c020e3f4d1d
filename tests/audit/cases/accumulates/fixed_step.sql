-- dialect: postgres
-- expect: nothing
update jobs set attempts = attempts + 1 where job_id = 7;
