"""Where pages are: below the token of a server, or beside each other in a folder of files."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from reslice.studio.values import slug


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses that a page names.

    `root` is what every one begins with: `/TOKEN/` on a server, and in a copy of files the way back to its folder from
    where the page lies (empty, or `../`). What only a server can answer has no address in a copy. `kept` are the runs
    that the copy holds, by target and id.
    """

    root: str
    is_static: bool = False
    kept: frozenset[tuple[str, str]] = frozenset()
    names_ledger: bool = False
    """Whether targets have ledgers of their own, so that an id alone may mean several runs."""

    def first(self) -> str:
        """Return the address of the first page."""
        return f"{self.root}index.html" if self.is_static else self.root

    def static(self, name: str) -> str:
        """Return the address of a style or a script."""
        return f"{self.root}static/{name}"

    def target(self, name: str, period: str = "", **query: str) -> str:
        """Return the address of a target's page, of one period of its calendar where that is named."""
        if self.is_static:
            return f"{self.root}target/{self.file_of_target(name, period)}.html"
        return f"{self.root}target/{slug(name)}{_query(period=period, **query)}"

    def status(self, name: str, range: str) -> str | None:
        """Return the address that compares a range with the source now."""
        return None if self.is_static else f"{self.root}target/{slug(name)}/status{_query(range=range)}"

    def job(self, name: str, job_id: str, action: str = "") -> str | None:
        """Return the address of a comparison that is at work, or of what ends it."""
        end = f"/{action}" if action else ""
        return None if self.is_static else f"{self.root}target/{slug(name)}/status/{job_id}{end}"

    def run(self, run_id: str, target: str, **query: str) -> str | None:
        """Return the address of a run's page; None when a copy does not hold it."""
        if self.is_static:
            return f"{self.root}run/{self.file_of(run_id, target)}.html" if (target, run_id) in self.kept else None
        return f"{self.root}run/{quote(run_id, safe='')}{_query(target=self._ledger(target), **query)}"

    def series(self, run_id: str, target: str, measure: str = "", **query: str) -> str | None:
        """Return the address of the series of a measure before and after a run."""
        if self.is_static:
            return None
        words = _query(target=self._ledger(target), measure=measure, **query)
        return f"{self.root}run/{quote(run_id, safe='')}/series{words}"

    def compare(self, first: str, second: str, target: str, **query: str) -> str | None:
        """Return the address of two runs side by side."""
        if self.is_static:
            return None
        return f"{self.root}compare{_query(a=first, b=second, target=self._ledger(target), **query)}"

    def twin(self, address: str) -> str:
        """Return the address of the `.json` twin of a page."""
        path, mark, query = address.partition("?")
        if self.is_static:
            return f"{path.removesuffix('.html')}.json"
        return (f"{path}index.json" if path.endswith("/") else f"{path}.json") + mark + query

    def file_of_target(self, name: str, period: str = "") -> str:
        """Return the name of a target's file in a copy, of one period where that is named, without its ending."""
        return f"{slug(name)}~{period}" if period else slug(name)  # no target is called so: it has no ~ after the first

    def file_of(self, run_id: str, target: str) -> str:
        """Return the name of a run's file in a copy, without its ending."""
        return f"{slug(run_id)}.{slug(target)}" if self.names_ledger else slug(run_id)

    def _ledger(self, target: str) -> str:
        return target if self.names_ledger else ""


def _query(**words: str) -> str:
    given = {name: word for name, word in words.items() if word}
    return f"?{urlencode(given)}" if given else ""
