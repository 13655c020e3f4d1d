"""How long reslice takes beside SQL written by hand, and how much memory; `python -m bench.bench` measures both."""
