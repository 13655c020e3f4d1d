# expect: RS101 at 8
from pyspark.sql import SparkSession, functions as F


def load(spark: SparkSession, day: str) -> None:
    orders = spark.table("orders").where(F.col("order_date") == day)
    daily = orders.groupBy("order_date", "channel").agg(F.sum("amount_cents"))
    daily.write.mode("append").saveAsTable("daily_orders")
