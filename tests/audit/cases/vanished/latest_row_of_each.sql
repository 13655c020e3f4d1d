-- dialect: bigquery
-- expect: nothing
merge shop.customers as t
using (
  select * from shop.customer_changes qualify row_number() over (partition by customer_id order by changed_at desc) = 1
) as s
on t.customer_id = s.customer_id
when matched then update set name = s.name
when not matched then insert row;
