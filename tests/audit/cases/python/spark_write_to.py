# expect: RS101 at 7
from pyspark.sql import SparkSession


def load(spark: SparkSession) -> None:
    daily = spark.table("orders").groupBy("order_date").count()
    daily.writeTo("daily_orders").append()
    daily.writeTo("daily_orders").overwritePartitions()
