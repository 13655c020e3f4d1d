-- dialect: oracle
-- expect: nothing
delete from monthly_orders where order_month = to_date(:month, 'YYYY-MM-DD');
insert into monthly_orders (order_month, channel, order_count)
select trunc(order_date, 'MM'), channel, count(*) from orders_fact
where order_date >= to_date(:month, 'YYYY-MM-DD') and order_date < add_months(to_date(:month, 'YYYY-MM-DD'), 1)
group by trunc(order_date, 'MM'), channel;
commit;
