"""The rules, one in each module; its docstring is the page that a user reads.

RS1xx: rows are added; RS2xx: the range that is replaced; RS3xx: rows are told apart by keys; RS4xx: what a query reads;
RS5xx: dbt; RS6xx: Python and schedulers; RS9xx: what is written about findings.
"""
