-- dialect: tsql
-- expect: note RS402 at 6
begin transaction;
truncate table dbo.provider;
insert into dbo.provider (provider_id, provider_name)
select row_number() over (order by (select null)) as provider_id, provider_name from dbo.providers;
commit;
