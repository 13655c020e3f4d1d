-- dialect: postgres
-- expect: nothing
insert into order_ledger (order_date, channel, amount_cents)
select s.order_date, s.channel, s.amount_cents - coalesce(l.amount_cents, 0)
from (select order_date, channel, sum(amount_cents) as amount_cents from orders_fact group by 1, 2) as s
left join (select order_date, channel, sum(amount_cents) as amount_cents from order_ledger group by 1, 2) as l
  on l.order_date = s.order_date and l.channel = s.channel
where s.amount_cents <> coalesce(l.amount_cents, 0);
