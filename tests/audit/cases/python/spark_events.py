# expect: nothing
from pyspark.sql import SparkSession


def load(spark: SparkSession) -> None:
    spark.read.parquet("s3://lake/events/2026-01-02").write.mode("append").saveAsTable("events")
