# expect: RS206 at 7
from pyspark.sql import SparkSession


def load(spark: SparkSession) -> None:
    daily = spark.sql("select count(*), order_date from orders where order_date = '2026-01-02' group by order_date")
    daily.write.insertInto("daily_orders", overwrite=True)
