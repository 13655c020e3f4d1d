-- dialect: postgres
-- expect: nothing
insert into channels_seen
select o.order_id, c.channel from orders_fact as o left join channels as c on c.id = o.channel_id
where c.channel not in (select channel from channels_seen);
