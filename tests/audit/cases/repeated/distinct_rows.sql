-- dialect: bigquery
-- expect: unknown RS303 at 4
merge shop.channels as t using (select distinct channel, region from shop.orders_fact) as s
on t.channel = s.channel
when matched then update set region = s.region
when not matched then insert (channel, region) values (s.channel, s.region);
