# expect: RS101 at 6
from pyspark.sql import SparkSession


def load(spark: SparkSession, day: str) -> None:
    spark.sql(f"insert into daily_orders select order_date, count(*) from orders where order_date = '{day}' group by 1")
