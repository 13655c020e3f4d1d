# expect: nothing
import pandas as pd


def load(engine):
    events = pd.read_csv("events.csv")
    events = events[events["id"].notna()]
    events.to_sql("events", engine, if_exists="append", index=False)
