"""The keys that a dbt model's config may have, and which of them decide how its rows are written."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

DECIDING = (
    "materialized",
    "unique_key",
    "incremental_strategy",
    "incremental_predicates",
    "partition_by",
    "partitioned_by",
    "partitions",
    "event_time",
    "batch_size",
    "begin",
    "lookback",
    "full_refresh",
    "on_schema_change",
    "merge_update_columns",
    "merge_exclude_columns",
    "merge_update_condition",
    "merge_insert_condition",
)
"""Keys without which another set of rows is written, or in another way."""

_OF_DBT = """
    access alias batch_size begin bind catalog_name check_cols column_types concurrent_batches config constraints
    contract database dbt_valid_to_current deprecation_date description docs enabled event_time fail_calc freshness
    full_refresh grants group hard_deletes incremental_predicates incremental_strategy invalidate_hard_deletes
    latest_version limit lookback materialized merge_exclude_columns merge_update_columns meta name
    on_configuration_change on_error on_schema_change packages persist_docs post-hook post_hook pre-hook pre_hook
    predicates project quote_columns quoting schema severity snapshot_meta_column_names sql_header static_analysis
    store_failures strategy tags target_database target_schema unique_key unrendered_config updated_at
    version versions where
"""
_OF_ADAPTERS = """
    allow_non_incremental_definition as_columnstore auto_liquid_cluster auto_refresh automatic_clustering backup
    base_location_root base_location_subpath bucket_count bucketed_by buckets change_tracking cluster cluster_by
    clustered_by cluster_id codec compression copy_grants copy_partitions create_notebook databricks_compute
    databricks_tags data_retention_time_in_days definer delete_condition delimiter dist distributed_by enable_refresh
    engine external_location external_volume field_delimiter file_format force_batch format glue_database glue_register
    grant_access_to ha hours_to_expiration http_path immutable_where include_full_name_in_path indexes index
    initialize insert_condition inserts_only intermediate_format is_external job_cluster_config kms_key_name labels
    layout lf_grants lf_inherited_tags lf_tags_config lifetime liquid_clustered_by location location_root
    matched_condition max_data_extension_time_in_days max_staleness merge_clauses merge_insert_condition
    merge_on_using_columns merge_returning_columns merge_update_condition merge_update_set_expressions
    merge_with_schema_evolution mv_on_schema_change native_drop not_matched_by_source_action
    not_matched_by_source_condition not_matched_condition options order_by overrides overwrite_columns
    parquet_read_options partition_by partition_expiration_days partition_type partitioned_by partitions
    partitions_limit plugin primary_key projections properties python_job_config query_group query_settings query_tag
    query_tags refresh_interval_minutes refresh_mode replace_on require_partition_filter resource_tags retain_history
    row_access_policy row_filter s3_data_dir s3_data_naming scheduler secure settings sharding_key
    skip_matched_step skip_not_matched_step snowflake_initialization_warehouse snowflake_warehouse sort sort_type
    sorted_by source_alias sql_security storage_uri submission_method table_format table_properties table_tag
    table_type target_alias target_lag tblproperties temp_schema tmp_relation_type transient ttl
    unique_tmp_table_suffix unlogged update_condition use_safer_relation_operations versions_to_keep
    view_security view_update_via_alter views_enabled write_compression zorder
"""
KNOWN = frozenset(_OF_DBT.split()) | frozenset(_OF_ADAPTERS.split()) | frozenset(DECIDING)
"""Keys that dbt or one of its adapters knows, each of them possible in any project."""

_LIKENESS = 0.85
_PLURALS = {"partition_by_columns": "partition_by", "strategy_incremental": "incremental_strategy"}


_ANOTHERS: Mapping[tuple[str, str], str] = {
    ("partitioned_by", "bigquery"): "partition_by",
    ("partitioned_by", "spark"): "partition_by",
    ("partitioned_by", "databricks"): "partition_by",
    ("partition_by", "athena"): "partitioned_by",
}
"""Of keys that another adapter knows, what this one calls the same."""


def meant(key: str, adapter: str | None) -> str:
    """Return the deciding key that a key nobody knows was meant to be; empty where it is known, or like none."""
    if key in KNOWN:
        return _ANOTHERS.get((key, adapter or ""), "")
    plain = key.lower().replace("-", "_").strip()
    if plain in KNOWN:
        return plain if plain in DECIDING else ""
    if plain in _PLURALS:
        return _PLURALS[plain]
    likely = max(DECIDING, key=lambda each: _likeness(plain, each))
    is_another = max(_likeness(plain, each) for each in KNOWN) > _likeness(plain, likely)
    return likely if _likeness(plain, likely) >= _LIKENESS and not is_another else ""


def _likeness(one: str, other: str) -> float:
    if abs(len(one) - len(other)) > 4:
        return 0.0
    return SequenceMatcher(None, one, other).ratio()
