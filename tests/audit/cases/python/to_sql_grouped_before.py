# expect: RS101 at 9
import pandas as pd
from sqlalchemy import create_engine


def load(url):
    orders = pd.read_csv("orders.csv")
    daily = orders.groupby("order_date")["amount"].sum().reset_index()
    daily.to_sql("daily_orders", create_engine(url), if_exists="append", index=False)
