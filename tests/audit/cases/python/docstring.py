# expect: nothing
"""How it used to be: insert into daily_orders select order_date, count(*) from orders group by 1."""


def load() -> str:
    """insert into daily_orders select order_date, count(*) from orders group by 1"""
    return "insert into daily_orders select order_date, count(*) from orders group by 1"
