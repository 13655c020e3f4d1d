# expect: note RS206 at 8
from pyspark.sql import SparkSession


def load(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    daily = spark.sql("select count(*), order_date from orders where order_date = '2026-01-02' group by order_date")
    daily.write.insertInto("daily_orders", overwrite=True)
