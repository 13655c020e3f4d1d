-- dialect: postgres
-- expect: unknown RS404 at 6
begin;
delete from channel_totals where period_start = :start;
insert into channel_totals (period_start, channel, order_count)
select :start, channel, count(*) from orders where order_ts between :start and :end group by channel;
commit;
