# expect: RS101 at 7
from pyspark.sql import SparkSession


def load(spark: SparkSession) -> None:
    daily = spark.sql("select order_date, count(*) from orders group by order_date")
    daily.write.insertInto("daily_orders")
