# expect: RS101 at 8
import pandas as pd
from sqlalchemy import create_engine


def load(url):
    orders = pd.read_csv("orders.csv")
    orders.groupby("order_date").agg({"amount": "sum"}).to_sql("daily_orders", create_engine(url), if_exists="append")
