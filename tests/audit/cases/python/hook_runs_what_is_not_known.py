# expect: unknown RS603 at 7, unknown RS603 at 12
from airflow.providers.postgres.hooks.postgres import PostgresHook


def load(sql):
    hook = PostgresHook("warehouse")
    hook.run(sql)


def other(job, spark, command):
    job.run(command)
    spark.sql(command)
