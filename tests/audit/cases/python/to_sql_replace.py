# expect: nothing
import pandas as pd


def load(engine):
    pd.read_csv("orders.csv").groupby("order_date").sum().to_sql("daily_orders", engine, if_exists="replace")
