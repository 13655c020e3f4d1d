# expect: nothing
from pyspark.sql import SparkSession


def load(spark: SparkSession) -> None:
    daily = spark.table("orders").groupBy("order_date").count()
    writer = daily.write.mode("overwrite").option("replaceWhere", "order_date = '2026-01-02'")
    writer.saveAsTable("daily_orders")
