# expect: unknown RS601 at 3
def load(frame, engine):
    frame.to_sql("daily_orders", engine, if_exists="append")
