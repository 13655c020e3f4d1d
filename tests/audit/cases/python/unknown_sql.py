# expect: unknown RS603 at 7
import psycopg


def run_job(url, job):
    with psycopg.connect(url) as connection:
        connection.execute(job.statement())
