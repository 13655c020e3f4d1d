# expect: RS101 at 7
import pandas as pd


def load(engine):
    daily = pd.read_sql("select order_date, count(*) n from orders group by order_date", engine)
    daily.to_sql("daily_orders", engine, if_exists="append")
