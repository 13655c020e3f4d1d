-- dialect: postgres
-- expect: nothing
begin;
delete from balances where day = :day;
insert into balances (day, account_id, cents)
select :day, b.account_id, b.cents + m.cents from balances as b
join movements as m on m.account_id = b.account_id and m.day = :day
where b.day = :day_before;
commit;
