"""What a reader should know of each name in the code, in a sentence: the hand-written half of the reference tables.

A name that is missing here, or that the code no longer has, fails the build of the pages.
"""

from __future__ import annotations

CONTRACT_KEYS: dict[str, str] = {
    "version": "The version of this file's format.",
    "connection": "The target's database, as a URL. See [Connection](#connection).",
    "targets": "The targets by name. The name is what you type: `reslice run NAME RANGE`.",
    "targets.NAME.table": (
        "The table: `table`, `schema.table` or `catalog.schema.table`. Parts that need it are quoted as in SQL: "
        '`main."daily orders"`. On PostgreSQL a table that is called exactly so comes first, then the one in lower '
        'case: `Sales` is `"Sales"` where there is one, else `sales`.'
    ),
    "targets.NAME.source": "The SQL file that recomputes the range. See [SQL files](#sql-files).",
    "targets.NAME.grain": (
        "The columns of which the target has one row per combination. An entry is a name, or `{column: channel, "
        "nulls: allow}`."
    ),
    "targets.NAME.grain[].column": "A column of the grain.",
    "targets.NAME.grain[].nulls": (
        "`allow`: NULL is a key like any other. `refuse`: a staged row without it is refused. The slice column is "
        "never NULL."
    ),
    "targets.NAME.slice": "Which grain column decides the slice, and how long a slice is.",
    "targets.NAME.slice.column": "A column of the grain: date, timestamp, ISO text, or integer `yyyymmdd`.",
    "targets.NAME.slice.unit": (
        "How long one slice is. Weeks begin on Monday. Hours need a timestamp with time zone, or a timestamp and "
        "`timezone: UTC`."
    ),
    "targets.NAME.slice.timezone": "The IANA zone in which days, weeks and months begin.",
    "targets.NAME.measures": (
        "The columns the source computes, by name. A plain list of names will do where none has options."
    ),
    "targets.NAME.measures.NAME.min": "A staged value below it is refused.",
    "targets.NAME.measures.NAME.nulls": "`allow` or `refuse` NULL in staged rows.",
    "targets.NAME.measures.NAME.scale": (
        "Digits behind the point that count; required for a float. See [Floats](concepts.md#floats)."
    ),
    "targets.NAME.stamps": (
        "Columns that reslice fills itself, by name: `run_time` or `run_id`. They take no part in comparing. See "
        "[Stamps](#stamps)."
    ),
    "targets.NAME.controls": (
        "An independent figure of the source. Without it every run says *not reconciled: no control declared*."
    ),
    "targets.NAME.controls.source": (
        "The SQL file of the control: the slice column and named figures, one row per slice. A missing row counts "
        "as zero."
    ),
    "targets.NAME.controls.match": (
        "What each figure must equal in every slice, exactly: `FIGURE: sum(MEASURE)`, or `FIGURE: count(*)` for rows."
    ),
    "targets.NAME.method": "How a slice is replaced. See [Method](#method).",
    "targets.NAME.guards": "The rules that stop a run until a person consents.",
    "targets.NAME.guards.empty_slice": "A slice that has rows would have none.",
    "targets.NAME.guards.total_change": (
        "A measure's total over the range would move by more than this, either way. `allow` never stops. A base of "
        "zero never stops."
    ),
    "targets.NAME.guards.removed_groups": "Groups would be removed.",
    "targets.NAME.guards.restored": (
        "The run would write other rows over what a [restore](concepts.md#the-way-back) has put back."
    ),
    "targets.NAME.guards.closed_through": (
        "The last closed slice: `yesterday`, `2 days ago`, or a date. A slice that ends later, or whose last "
        "instant has not passed by the database's clock, stops a run."
    ),
    "targets.NAME.guards.max_slices": "The range has more slices than this.",
    "targets.NAME.affected": (
        "The SQL file that names the slices touched since `:since`: the old day and the new day of each correction."
    ),
    "targets.NAME.downstream": (
        "Readers of the target, by name: `verify` compares what they report, `run` names them in a warning."
    ),
    "targets.NAME.downstream.NAME.query": (
        "The SQL file of what the reader reports: the slice column and named figures, one row per slice."
    ),
    "targets.NAME.downstream.NAME.match": "What each figure must equal in every slice of the target: as in `controls`.",
    "targets.NAME.ledger": "Where the ledger is.",
    "targets.NAME.ledger.schema": (
        "The schema of the [ledger](ledger.md), in the target's own database. Made when it is missing. A table has one "
        "ledger."
    ),
    "targets.NAME.ledger.keep_days": (
        "For how many days replaced rows and groups are kept at least; those of the last published run of a slice are "
        "kept for good. See [what is kept](ledger.md#what-is-kept-and-for-how-long)."
    ),
    "targets.NAME.timeouts": "How long to wait.",
    "targets.NAME.timeouts.wait": (
        "For the turn of the table, while another publish has it. On DuckDB also for the file, while another process "
        "holds it; on PostgreSQL for a server that is starting or full."
    ),
    "targets.NAME.timeouts.lock": (
        "On DuckDB for a writer who changes the same rows; on PostgreSQL for the lock of the table, which every "
        "transaction keeps from it that has written there and has not ended."
    ),
    "targets.NAME.timeouts.statement": "For one statement.",
    "targets.NAME.timeouts.idle": (
        "For a client that went silent while it holds a lock. Without effect on DuckDB, where the lock goes with "
        "the process."
    ),
}

KINDS_NEXT: dict[str, str] = {
    "usage": "Read the line after *asked*: it is the form the command takes. `reslice COMMAND --help` has examples.",
    "contract": "Each line names file, line, column and key. Correct them all; none is hidden behind another.",
    "range_unreadable": (
        "Type a day `2026-01-02`, a month `2026-01`, a quarter `2026-Q1`, or `A..B`. [All forms](commands.md#range)."
    ),
    "connection": (
        "On DuckDB the file must exist and be a DuckDB database, of a version that the installed duckdb reads: reslice "
        "makes no database. One in memory is passed to `reslice.open(connection=…)`. On PostgreSQL the server's own "
        "words are under *found*: the role, its password, the database or an option is wrong, or the server is older "
        "than 16."
    ),
    "source_invalid": "Run the SQL file by hand; the database's own message is under *found*.",
    "run_unknown": "`reslice history` lists the runs. A beginning that fits several is not enough.",
    "plan_unreadable": "Make the file again with `reslice plan … --out FILE`.",
    "nothing_read": (
        "Why stands under *found*, of the other files in the answer. Name the dialect with `--dialect`, or give files "
        "of SQL, dbt or Python."
    ),
    "nothing_to_draft": (
        "A table needs a column that decides the slice; a file needs a statement that writes a table from a SELECT. "
        "Write the contract by hand, or name another table or file."
    ),
    "nothing_to_restore": "`reslice history` lists the runs: take one that is published or restored.",
    "range_reversed": "Swap the two ends. The range you may have meant is under *next*.",
    "range_open": "Name both ends: a range is closed.",
    "range_off_unit": "Take whole slices. The range that holds your bounds is under *next*.",
    "target_missing": "Create the table, or correct `table:`.",
    "target_not_table": "Name the table behind the view.",
    "target_column": (
        "Name the column in grain, measures or stamps, or drop it. A replace would blank a column nobody names."
    ),
    "target_referenced": (
        "Use `method: merge`: it leaves rows in place that others point at. Where a row has to go all the same, delete "
        "what points at it first; a foreign key that would delete or change rows elsewhere loses its ON DELETE."
    ),
    "target_key": "Add the stamp of the run's id to the key, or drop the key: each version repeats a row's own key.",
    "view_foreign": "Give that view or table another name: `append_version` needs `TABLE_current` for its own view.",
    "view_columns": "Drop the view, and run again: the run makes it anew. Give its readers their grants again.",
    "versions_unknown": "Give the table its name and its ledger back, or run it once by `replace_slice` and go on.",
    "target_rights": (
        "Run as a user who may write the file and its folder; on PostgreSQL have the owner grant the role what it "
        "lacks."
    ),
    "target_policies": "Run as the table's owner, or as a role with BYPASSRLS: hidden rows cannot be compared.",
    "source_rights": "Grant the role SELECT on what the source reads; where a row policy applies, use another role.",
    "pooler": "Name the server itself in `connection:`, or a pool that keeps one session per client.",
    "target_type": "Change the column's type, or declare what is missing, such as the scale of a float.",
    "functions_replaced": (
        "Drop the macro or function, named like `md5`, `sum` or another: with it, different rows could have equal "
        "fingerprints."
    ),
    "ledger_foreign": (
        "Where tables of your own bear the ledger's names, they are left alone: choose another schema, `ledger: "
        "{schema: reslice_ledger}`. Where another ledger guards the table, name that one: with "
        "two, publishes could overlap."
    ),
    "method_unsupported": "Use `method: replace_slice`; where a limit of the server is named, fewer measures.",
    "source_column": (
        "Return the columns of the contract, no more and no fewer. Order does not matter: they are matched by name."
    ),
    "source_type": "Cast in the source, where you decide what becomes of values that do not fit.",
    "lossy_value": "Cast or round in the source, or widen the target's column. The example names a row.",
    "key_repeated": "Group by the whole grain, or find the join that multiplies rows.",
    "key_null": "Correct the source, or allow it: `grain: [{column: channel, nulls: allow}]`.",
    "slice_null": "Give the row a date or leave it out: a row without one belongs to no slice.",
    "slice_off_unit": "Truncate to the unit in the source. If the target holds such a value, correct that row first.",
    "outside_range": "Filter by `:start` and `:end` in the source, on the same column that decides the slice.",
    "measure_null": "Correct the source, or declare `nulls: allow` for the measure.",
    "measure_minimum": "Look at the example row. If it is right, lower `min`.",
    "control_rows": "Return one row per slice of the range, with the slice column and exact numbers.",
    "control_differs": (
        "Both figures and the slices are under *found*. One of the two queries is wrong: a join that multiplies, "
        "or a filter that only one of them has."
    ),
    "base_moved": (
        "Another writer changed the slice after it was compared. Plan again: their rows are in the new diff."
    ),
    "later_run": (
        "After a `run`: nothing to do, a newer run has published newer rows. Plan again to be sure. After a `restore`: "
        "restore the run that is named first, or leave it."
    ),
    "approval_stale": "The source or the target moved since the approval. Plan again, and approve that.",
    "contract_changed": (
        "Plan again under the contract as it is now. Before a `restore`: put the contract back as it was, for the time "
        "of the restore."
    ),
    "changed_since_run": (
        "Somebody wrote to the slice after the run. `reslice status` shows how it stands to the source; correct it "
        "there, and run."
    ),
    "kept_columns": (
        "What differs is under *found*. Give the table its columns back, or [copy the rows by "
        "hand](ledger.md#bring-rows-back): the table that holds them is named."
    ),
    "kept_gone": "Correct the source, and `reslice run` the range: that is the way that is left.",
    "not_as_staged": (
        "Look for a trigger, default or constraint that changes rows as they are written. Everything was rolled back."
    ),
    "empty_slice": (
        "Look with `reslice show RUN --diff`. If the slice is right to be empty, `reslice run --approve RUN`."
    ),
    "total_change": "As above: look, then approve. If such moves are normal for this table, widen the guard.",
    "removed_groups": "As above: look, then approve.",
    "restored": (
        "Somebody put these rows back. Ask who and why: `reslice show RUN`. If the source is right by now, approve."
    ),
    "sandbox": (
        "What is in the way is under *found*: the right to make a database (`ALTER ROLE … CREATEDB`), room, or other "
        "sessions. Or prove it `--in-place`."
    ),
    "unconfirmed": (
        "Look with `reslice show RUN --diff`, or at what a proof in place would touch; then the same command on a "
        "terminal, or with `--yes`."
    ),
    "closed_through": "Wait until the slice has ended, or approve.",
    "max_slices": "Check the range you typed, then approve.",
    "database_unavailable": (
        "Check the file, or the server and the network, then run the same command again. A server that is starting or "
        "full was waited for already."
    ),
    "database_busy": "Another process or another publish is in front. The same command again, or a longer `--wait`.",
    "conflict": "The same command again: it stages and compares afresh.",
    "source_failed": (
        "The same command again. If it fails again, the message under *found* names the cause in the source."
    ),
    "publish_failed": "Read the message: a CHECK, a full disk. Then the same command again.",
    "command_failed": (
        "The end of what the command said is under *found*. Let it run in the sandbox by itself first: `--keep` keeps "
        "that. `--timeout` gives it more time."
    ),
    "write_aborted": (
        "Write again, under the lock. If an error inside the block was caught there, let it pass: it has ended the "
        "transaction."
    ),
    "outcome_unknown": (
        "`reslice show RUN`. When the database answers, the ledger says what happened: published, or not."
    ),
    "slipped_in": (
        "`reslice plan` shows what the other writer left; `reslice run` again puts the slice right. Then let the "
        "writer take turns with publishes: see [Live writers](writers.md)."
    ),
    "not_read_back": "`reslice plan` of the same range: when nothing differs, the rows are as they were staged.",
    "not_put_back": (
        "Run the statements under *next*: they put the rows from before back out of the copy that is kept. Then remove "
        "the copy."
    ),
    "internal": (
        "A bug. `reslice history` tells what became of the run; the named file has the details, without secrets."
    ),
    "partly_published": "The same command again: it does exactly what is still open.",
    "interrupted": "The same command again, when you like: `retry` is true.",
}

EXIT_CODES: dict[int, tuple[str, str, str]] = {
    0: ("Done, or nothing to do.", "as the message says", "go on"),
    1: (
        "The command worked, and its answer is no: `verify` or `status` found a difference, `doctor` something "
        "wrong, `audit` a finding, `prove` no proof, or `plan --exit-code` changes.",
        "untouched",
        "a person looks",
    ),
    2: ("Not understood: usage, contract, SQL file, a RANGE that does not parse.", "untouched", "do not retry"),
    3: ("Refused by a check, or stopped by a guard.", "untouched", "do not retry: a person decides"),
    4: (
        "Nothing changed, and trying again may help: database down or busy, conflict. Also of a command that only "
        "looks, when its answer cannot be written.",
        "untouched",
        "retry",
    ),
    5: ("The outcome is not known, or not as staged.", "look first", "do not retry"),
    6: ("`--per-slice` ended part-way.", "the slices named are published whole", "run again"),
    129: ("SIGHUP: the terminal has gone. Rolled back.", "untouched", "run again when you like"),
    130: ("Ctrl-C. Rolled back.", "untouched", "run again when you like"),
    143: ("SIGTERM. Rolled back.", "untouched", "run again when you like"),
}

RANGE_FORMS: tuple[tuple[str, str], ...] = (
    ("2026-01-02", "one day"),
    ("2026-W02", "an ISO week, Monday to Sunday"),
    ("2026-01", "a month"),
    ("2026-Q1", "a quarter"),
    ("2026", "a year"),
    ("2026-01-02T05:00", "an hour, where slices are hours"),
    ("2026-01-01..2026-01-31", "two of these, both included"),
    ("2026-01-01,2026-01-03..2026-01-05", "several ranges, separated by commas: one RANGE, published in one commit"),
)

METHODS: dict[str, str] = {
    "replace_slice": "deletes the slices that differ by range, and inserts the staged rows; the default",
    "merge": "updates the groups that differ, inserts new ones, deletes those that are gone; other rows stay in place",
    "append_version": "inserts the staged rows beside the old ones; a view reads the current version of each slice",
    "replace_partition": "replaces whole partitions",
}

JSON_FIELDS: dict[str, str] = {
    "schema": "`reslice/COMMAND/1`. Fields are only ever added.",
    "target": "the target's name",
    "table": "the table, with catalog and schema",
    "run": "the run's id; null for a plan, and for a verify without `--record`. In `show` the run itself",
    "kind": "`run`, `verify`, `restore` or `prune`",
    "method": "how a slice is replaced",
    "slice": "`start`, `end` (both included), `unit`, `count`, and `range` as it is typed",
    "outcome": "`planned`, `published`, `restored`, `unchanged`, `stopped`, `refused`, `failed` or `unknown`",
    "target_changed": "whether the target's rows are others than before; null when that is not known",
    "retry": "whether the same command again may help",
    "diff": "groups `added`, `changed`, `removed`, `unchanged`",
    "rows": "rows of the range: `before`, `staged`, `after`",
    "totals": "per measure, `before` and `after` over the range",
    "fingerprint": "`base`, `staged`, `after` as `rows:sum`",
    "groups": "the groups that move, largest first: `change`, `slice`, `key`, `before`, `after`, `rows_before`",
    "groups_left_out": "how many more there are",
    "checks": (
        "every check and guard: `name`, `ok`, `found`, `consented`, `stops`. In `doctor`: `target`, `name`, `state` "
        "(`ok`, `advice`, `warning`, `wrong`), `found`, `next`"
    ),
    "engine": "`doctor`: the database's `name` and `version`",
    "controls": "per figure: `name`, `figure`, `expression`, `control`, `target`, `ok`, `slices_differing`",
    "slices_published": "the slices that were written",
    "affected": "slices outside the range that corrections touch, and that were left",
    "warnings": "what to look at",
    "notes": "facts that need no action; in `audit` what is permitted and worth knowing, as `findings`",
    "seconds": "how long the command worked on the database",
    "repeatable": "`verify`: whether two evaluations of the source gave the same rows",
    "unstable_columns": "`verify`: the columns in which they differ",
    "equals_source": "whether the target holds the source's rows",
    "downstream": "`verify`: as `controls`, per reader",
    "runs": "`history`: the runs, newest first",
    "slices": (
        "`show`: what was found and done, per slice. `status`: per slice with rows on either side `slice`, `state` "
        "(`equal`, `differs`, `missing`, `extra`), `added`, `changed`, `removed`, `totals`"
    ),
    "pruned": "`versions --prune`: whether anything was deleted",
    "versions": (
        "`versions`: those in the table, or deleted: `slice`, `run` (null for rows of no run), `rows`, `current`, "
        "`replaced_at`"
    ),
    "restores": "`restore`: the run whose replaced rows are put back",
    "sql": "the statements of the publish (`show`, and `plan --sql`); of the ledger (`init --ledger --sql`)",
    "files_written": "`init`: the files that were made, or that the target was added to",
    "unsure": "`init`: what to look at before the first run, one sentence each",
    "contract": "`init`: the target's lines in the contract file",
    "source": "`init`: the text of the source",
    "ledger": (
        "`init --ledger`: per schema, the tables that were `made`, those that were `present`, and the `views` that "
        "were made"
    ),
    "files": "`audit`: how many files were looked at",
    "findings": (
        "`audit`: the writes that are unsafe: `path`, `line`, `column`, `end_line`, `end_column` (from 1, the end "
        "included), `code`, `title`, `detail`, `help`, `table` (null where it is about none)"
    ),
    "unknown": "`audit`: what reading cannot decide, as `findings`; not counted as safe",
    "unparsed": "`audit`: what could not be read: `path`, `line`, `column`, `why`; not counted as safe",
    "suppressed": (
        "`audit`: what comments suppress, as `findings`, with `sort` (`finding`, `note`, `unknown`) and `reason`"
    ),
    "dialects_guessed": "`audit`: of the files whose dialect nobody named, how many were read in which",
    "rules": "`rule`: `code`, `title`, `why`, `examples` (`bad`, `kind`, `text`) and `help` of each",
    "error": (
        "null, or `kind`, `asked`, `found`, `unchanged`, `next`, `consent` (after a stop: the command that consents), "
        "and every one of the `failures`"
    ),
    "next": "the next command",
    "exit_code": "what the process ends with",
    "address": "where the studio answers, with the token that leads in; null when a copy was written",
    "export": "the first page of the copy that was written; null when the studio was served",
    "files_copied": "how many files the copy has",
}

PROVE_FIELDS: dict[str, str] = {
    "schema": "`reslice/prove/1`",
    "target": "the target of the contract; null where the table was named by `--table`",
    "table": "the full name of the table",
    "range": "the range that was named; null without one",
    "grain": "the columns of which there is one row per combination",
    "columns": "the columns that were compared",
    "ignored": "the columns that were left out by `--ignore`, or as stamps of the contract",
    "command": "the words of the command",
    "sql": "the file of `--sql`",
    "in_place": "whether the command ran in the database itself",
    "kept": "where the sandbox is that `--keep` kept",
    "verdict": "`proven`, `repeats, still wrong`, `repeats, not safe`, `not repeatable`, `not proven`",
    "repeatable": "whether every later run left what run 1 left; null where the command wrote nothing",
    "equals_source": "whether the table holds what its source gives; null where that is not known",
    "wrote_nothing": "whether the command left the sandbox as it was",
    "real_table_changed": "whether the table itself, not the copy, changed meanwhile",
    "before": "the table before run 1: `rows`, `rows_in_range`, and `totals` of the range",
    "runs": "each run: `run`, `seconds`, and the table after it as in `before`",
    "source": "what the source gives: `range`, `error` where it could not be compared, and as in `before`",
    "counts": "how many groups of each kind: between `runs`, `source` and table, `outside` the range, and `keys`",
    "groups": "the first of them: `kind`, `between`, `key`, `before`, `after`, `rows_before`, `rows_after`",
    "groups_left_out": "how many more there are",
    "stamps_moved": "columns that look like stamps, where they are all that moved between runs",
    "crash": "`ok`, `seed`, and of each try `seconds`, `killed`, `table` (`before`, `after`, `torn`), `rows`",
    "at_once": (
        "`ok`, null where no two were at work at the same time; `pairs` with `exit_codes`, `as_one`, `at_once`, `said` "
        "and the table; and the repeated `groups`"
    ),
    "warnings": "what a person should look at",
    "notes": "what there is to know besides",
    "seconds": "how long it took",
    "error": "as of every command",
    "next": "the next command",
    "exit_code": "the exit code",
}
