# expect: nothing
import pandas as pd
from sqlalchemy import create_engine, text


def load(url, day):
    daily = pd.read_csv("orders.csv").groupby("order_date").sum()
    with create_engine(url).begin() as connection:
        connection.execute(text("delete from daily_orders where order_date = :day"), {"day": day})
        daily.to_sql("daily_orders", connection, if_exists="append")
