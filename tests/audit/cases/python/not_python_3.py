# expect: unparsed at 2
print "insert into daily_orders select order_date, count(*) from orders group by 1"
