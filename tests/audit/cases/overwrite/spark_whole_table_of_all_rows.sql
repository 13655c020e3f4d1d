-- dialect: spark
-- expect: unknown RS206 at 5

-- all of the table from all of its source: right, unless the session is dynamic and a partition has gone
insert overwrite table dim_customer
select customer_id, name, region from staged_customer;
