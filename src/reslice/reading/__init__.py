"""Reading the SQL of others with sqlglot: placeholders and templates, statements, columns, and bounds on a date.

What `init --source` drafts from and what `audit` judges is read here, once. Nothing of it runs, and nothing of a run
needs it.
"""
