"""Jobs as people have them, in many dialects, each with the draft a person would write by hand.

All fill `daily_orders` (or a like table) from `orders_fact`. `where` is what has to stand behind WHERE in the source.
"""

from __future__ import annotations

from dataclasses import dataclass

PAID = "paid"
EVERY = "every"


@dataclass(frozen=True)
class JobCase:
    """One job: its text, and what the draft has to be. `rows` names the expected rows of the target after a run."""

    name: str
    dialect: str | None
    text: str
    where: str
    rows: str = EVERY
    range: str = "2026-01-03"
    grain: tuple[str, ...] = ("order_date", "channel")
    unsure: tuple[str, ...] = ()
    is_run: bool = True


BOTH = "order_date BETWEEN :start AND :end"
INSTANTS = "ordered_at >= :start_instant AND ordered_at < :end_instant"
SELECT = "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"

CASES = (
    JobCase(
        "delete_insert_literals",
        None,
        f"""
        DELETE FROM daily_orders WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02';
        INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
        {SELECT} WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY 1, 2;
        """,
        BOTH,
        range="2026-01-01..2026-01-02",
    ),
    JobCase(
        "half_open_dates",
        None,
        f"""
        BEGIN;
        DELETE FROM daily_orders WHERE order_date >= DATE '2026-01-01' AND order_date < DATE '2026-01-03';
        INSERT INTO daily_orders {SELECT}
        WHERE order_date >= DATE '2026-01-01' AND order_date < DATE '2026-01-03' GROUP BY order_date, channel;
        COMMIT;
        """,
        BOTH,
        range="2026-01-01..2026-01-02",
    ),
    JobCase(
        "timestamps_half_open",
        None,
        """
        INSERT INTO daily_orders
        SELECT CAST(ordered_at AS DATE) AS order_date, channel, count(*) AS order_count,
            sum(amount_cents) AS amount_cents
        FROM orders_fact
        WHERE ordered_at >= '2026-01-01' AND ordered_at < '2026-01-03' AND status = 'paid'
        GROUP BY ALL
        """,
        f"{INSTANTS} AND status = 'paid'",
        rows=PAID,
        range="2026-01-01..2026-01-02",
    ),
    JobCase(
        "upsert_on_conflict",
        "postgres",
        """
        INSERT INTO public.daily_orders AS d (order_date, channel, order_count, amount_cents)
        SELECT o.order_date, o.channel, count(*), sum(o.amount_cents)
        FROM public.orders_fact o
        WHERE o.order_date = %(day)s::date
        GROUP BY o.order_date, o.channel
        ON CONFLICT (order_date, channel) DO UPDATE
        SET order_count = excluded.order_count, amount_cents = excluded.amount_cents
        """,
        "o.order_date BETWEEN :start AND :end",
        unsure=(
            "translated from postgres",
            "never removes a row",
            "table: public.daily_orders was read as daily_orders",
        ),
    ),
    JobCase(
        "airflow_template",
        "postgres",
        f"""
        -- runs every night
        DELETE FROM daily_orders WHERE order_date = '{{{{ ds }}}}';
        INSERT INTO daily_orders {SELECT} WHERE order_date = '{{{{ ds }}}}' GROUP BY 1, 2;
        """,
        BOTH,
    ),
    JobCase(
        "airflow_interval",
        None,
        """
        INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
        SELECT date_trunc('day', ordered_at)::DATE, channel, count(*), sum(amount_cents)
        FROM orders_fact
        WHERE ordered_at >= '{{ data_interval_start }}' AND ordered_at < '{{ data_interval_end }}'
        GROUP BY 1, 2
        """,
        INSTANTS,
    ),
    JobCase(
        "snowflake_merge",
        "snowflake",
        """
        MERGE INTO analytics.daily_orders t
        USING (
          SELECT o.order_date AS d, o.channel AS ch, COUNT(*) AS n, SUM(o.amount_cents) AS cents
          FROM raw.orders_fact o
          WHERE o.order_date >= $start_day AND o.order_date < DATEADD(day, 1, $end_day)
          GROUP BY o.order_date, o.channel
        ) s
        ON t.order_date = s.d AND t.channel = s.ch
        WHEN MATCHED THEN UPDATE SET order_count = s.n, amount_cents = s.cents
        WHEN NOT MATCHED THEN INSERT (order_date, channel, order_count, amount_cents) VALUES (s.d, s.ch, s.n, s.cents)
        """,
        "o.order_date BETWEEN :start AND :end",
        unsure=("translated from snowflake", "source: raw.orders_fact was read as orders_fact", "never removes a row"),
    ),
    JobCase(
        "snowflake_insert_overwrite",
        "snowflake",
        f"INSERT OVERWRITE INTO daily_orders {SELECT} WHERE order_date BETWEEN :1 AND :2 GROUP BY ALL".replace(
            ":1", "%s"
        ).replace(":2", "%s"),
        BOTH,
    ),
    JobCase(
        "spark_static_partition",
        "spark",
        """
        SET hive.exec.dynamic.partition = true;
        INSERT OVERWRITE TABLE daily_orders PARTITION (order_date = '${hiveconf:day}')
        SELECT channel, count(*) AS order_count,
            sum(amount_cents) AS amount_cents
        FROM orders_fact WHERE order_date = '${hiveconf:day}' GROUP BY channel
        """,
        BOTH,
        unsure=("the job writes its own date into order_date",),
    ),
    JobCase(
        "spark_dynamic_partition",
        "spark",
        """
        INSERT OVERWRITE TABLE daily_orders PARTITION (order_date)
        SELECT channel, count(*) AS order_count, sum(amount_cents) AS amount_cents, order_date
        FROM orders_fact WHERE order_date >= '${from}' AND order_date <= '${to}' GROUP BY channel, order_date
        """,
        BOTH,
    ),
    JobCase(
        "databricks_replace_where",
        "databricks",
        f"""
        INSERT INTO daily_orders REPLACE WHERE order_date >= '2026-01-01' AND order_date <= '2026-01-02'
        {SELECT} WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY order_date, channel
        """,
        BOTH,
        range="2026-01-01..2026-01-02",
    ),
    JobCase(
        "databricks_merge_star",
        "databricks",
        f"""
        MERGE INTO daily_orders AS t
        USING ({SELECT} WHERE order_date = :run_date GROUP BY order_date, channel) AS s
        ON t.order_date = s.order_date AND t.channel = s.channel AND t.order_date = :run_date
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        """,
        BOTH,
    ),
    JobCase(
        "bigquery_backticks",
        "bigquery",
        """
        DECLARE run_day DATE DEFAULT '2026-01-02';
        DELETE FROM `shop.mart.daily_orders` WHERE order_date = @run_day;
        INSERT INTO `shop.mart.daily_orders` (order_date, channel, order_count, amount_cents)
        SELECT DATE(ordered_at) AS order_date, channel, COUNT(*), SUM(amount_cents)
        FROM `shop.raw.orders_fact`
        WHERE DATE(ordered_at) = @run_day
        GROUP BY order_date, channel
        """,
        "CAST(ordered_at AS DATE) BETWEEN :start AND :end",
        unsure=("translated from bigquery", "shop.raw.orders_fact was read as orders_fact"),
    ),
    JobCase(
        "bigquery_full_refresh",
        "bigquery",
        """
        CREATE OR REPLACE TABLE mart.daily_orders PARTITION BY order_date AS
        WITH paid AS (SELECT * FROM raw.orders_fact WHERE status = 'paid')
        SELECT DATE_TRUNC(order_date, DAY) AS order_date, channel, COUNT(*) AS order_count,
            SUM(amount_cents) AS amount_cents
        FROM paid
        GROUP BY 1, 2
        """,
        "order_date BETWEEN :start AND :end",
        rows=PAID,
        unsure=("the job does not limit order_date", "raw.orders_fact was read as orders_fact"),
    ),
    JobCase(
        "tsql_variables_no_semicolons",
        "tsql",
        """
        DECLARE @from date = '2026-01-01'
        DECLARE @to date = '2026-01-03'
        DELETE FROM dbo.daily_orders WHERE order_date >= @from AND order_date < @to
        INSERT INTO dbo.daily_orders (order_date, channel, order_count, amount_cents)
        SELECT CAST(ordered_at AS date), channel, COUNT(*), SUM(amount_cents)
        FROM dbo.orders_fact
        WHERE ordered_at >= @from AND ordered_at < @to
        GROUP BY CAST(ordered_at AS date), channel
        GO
        """,
        INSTANTS,
        unsure=("translated from tsql", "takes 'a' and 'A' for equal"),
    ),
    JobCase(
        "tsql_select_into_temp",
        "tsql",
        """
        SELECT order_date, channel, COUNT(*) AS order_count, SUM(amount_cents) AS amount_cents
        INTO #stage FROM orders_fact WHERE order_date = @d GROUP BY order_date, channel;
        DELETE FROM daily_orders WHERE order_date = @d;
        INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
        SELECT order_date, channel, order_count, amount_cents FROM #stage;
        """,
        BOTH,
        unsure=("stage is made by the file itself",),
    ),
    JobCase(
        "mysql_replace_curdate",
        "mysql",
        f"""
        DELETE FROM `daily_orders` WHERE `order_date` >= CURDATE() - INTERVAL 3 DAY;
        INSERT INTO `daily_orders` (`order_date`, `channel`, `order_count`, `amount_cents`)
        {SELECT} WHERE order_date >= CURDATE() - INTERVAL 3 DAY GROUP BY order_date, channel
        """,
        BOTH,
        unsure=("the job has no upper bound on order_date",),
    ),
    JobCase(
        "redshift_staging_swap",
        "redshift",
        f"""
        CREATE TEMP TABLE stage AS {SELECT}
        WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY order_date, channel;
        DELETE FROM daily_orders USING stage WHERE daily_orders.order_date = stage.order_date;
        INSERT INTO daily_orders SELECT * FROM stage;
        """,
        BOTH,
        range="2026-01-01..2026-01-02",
        unsure=("stage is made by the file itself",),
    ),
    JobCase(
        "trino_insert",
        "trino",
        """
        DELETE FROM hive.mart.daily_orders WHERE order_date = DATE '2026-01-02';
        INSERT INTO hive.mart.daily_orders
        SELECT date_trunc('day', ordered_at) AS order_date, channel, count(*) AS order_count,
            sum(amount_cents) AS amount_cents
        FROM hive.raw.orders_fact
        WHERE date(ordered_at) = DATE '2026-01-02'
        GROUP BY 1, 2
        """,
        "CAST(ordered_at AS DATE) BETWEEN :start AND :end",
        range="2026-01-02",
    ),
    JobCase(
        "dbt_incremental",
        None,
        """
        {{ config(materialized='incremental', unique_key=['order_date', 'channel'], alias='daily_orders') }}

        with orders as (select * from {{ ref('orders_fact') }})
        select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
        from orders
        {% if is_incremental() %}
        where order_date >= (select max(order_date) from {{ this }})
        {% endif %}
        group by 1, 2
        """,
        BOTH,
        unsure=("goes on from what the table holds", "{{ ref('orders_fact') }} was read as the table orders_fact"),
    ),
    JobCase(
        "dbt_vars",
        None,
        """
        {{ config(alias='daily_orders') }}
        select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
        from {{ source('shop', 'orders_fact') }}
        where order_date between '{{ var("start") }}' and '{{ var("end") }}'
        group by order_date, channel
        """,
        BOTH,
    ),
    JobCase(
        "nested_cte_and_join",
        None,
        """
        WITH names AS (SELECT 'web' AS channel UNION ALL SELECT 'store'),
        per_day AS (
          SELECT o.order_date AS day, o.channel, count(*) AS n, sum(o.amount_cents) AS cents
          FROM orders_fact o JOIN names USING (channel)
          WHERE o.order_date BETWEEN $1 AND $2
          GROUP BY o.order_date, o.channel
        )
        INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
        SELECT p.day, p.channel, p.n, p.cents FROM per_day p
        """,
        "o.order_date BETWEEN :start AND :end",
    ),
    JobCase(
        "positional_names",
        None,
        """
        INSERT INTO daily_orders
        SELECT order_date AS d, channel AS c, count(*), sum(amount_cents)
        FROM orders_fact WHERE order_date IN ('2026-01-01', '2026-01-02') GROUP BY d, c
        """,
        BOTH,
        range="2026-01-01..2026-01-02",
        unsure=("writes by place",),
    ),
    JobCase(
        "between_timestamps",
        None,
        """
        DELETE FROM daily_orders WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02';
        INSERT INTO daily_orders
        SELECT CAST(ordered_at AS DATE) AS order_date, channel, count(*) AS order_count,
            sum(amount_cents) AS amount_cents
        FROM orders_fact WHERE ordered_at BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY 1, 2
        """,
        INSTANTS,
        range="2026-01-01..2026-01-02",
        unsure=("BETWEEN two instants left out",),
    ),
    JobCase(
        "python_format",
        None,
        f"INSERT INTO daily_orders {SELECT} "
        "WHERE order_date >= '{start_date}' AND order_date <= '{end_date}' GROUP BY 1, 2",
        BOTH,
    ),
    JobCase(
        "jdbc_question_marks",
        "oracle",
        f"INSERT INTO daily_orders (order_date, channel, order_count, amount_cents) {SELECT} "
        "WHERE order_date >= ? AND order_date <= ? GROUP BY order_date, channel",
        BOTH,
        unsure=("Oracle takes '' for NULL",),
    ),
    JobCase(
        "qualified_dedup",
        "snowflake",
        """
        INSERT INTO daily_orders
        SELECT order_date, channel, order_count, amount_cents
        FROM (SELECT order_date, channel, 1 AS order_count, amount_cents, order_id
              FROM orders_fact WHERE order_date = '{{ ds }}')
        QUALIFY ROW_NUMBER() OVER (PARTITION BY order_date, channel ORDER BY order_id) = 1
        """,
        BOTH,
        is_run=False,
    ),
    JobCase(
        "reversed_and_or",
        None,
        f"INSERT INTO daily_orders {SELECT} "
        "WHERE (order_date = '2026-01-01' OR order_date = '2026-01-02') "
        "AND (channel = 'web' OR channel = 'store') GROUP BY 1, 2",
        f"{BOTH} AND (channel = 'web' OR channel = 'store')",
        range="2026-01-01..2026-01-02",
    ),
    JobCase(
        "flipped_sides",
        None,
        f"INSERT INTO daily_orders {SELECT} "
        "WHERE '2026-01-01' <= order_date AND '2026-01-02' >= order_date GROUP BY 1, 2",
        BOTH,
        range="2026-01-01..2026-01-02",
    ),
    JobCase(
        "clickhouse_start_of_day",
        "clickhouse",
        """
        INSERT INTO daily_orders
        SELECT toStartOfDay(ordered_at) AS order_date, channel, count() AS order_count,
            sum(amount_cents) AS amount_cents
        FROM orders_fact WHERE ordered_at >= '2026-01-01' AND ordered_at < '2026-01-03' GROUP BY order_date, channel
        """,
        INSTANTS,
        range="2026-01-01..2026-01-02",
        is_run=False,
    ),
    JobCase(
        "union_of_two",
        None,
        f"""
        INSERT INTO daily_orders
        {SELECT} WHERE order_date = '{{{{ ds }}}}' AND status = 'paid' GROUP BY 1, 2
        UNION ALL
        SELECT order_date, 'void', count(*), sum(amount_cents) FROM orders_fact
        WHERE order_date = '{{{{ ds }}}}' AND status = 'void' GROUP BY 1
        """,
        "order_date BETWEEN :start AND :end AND status = 'paid'",
        unsure=("of the UNION the first SELECT was read",),
        is_run=False,
    ),
)
