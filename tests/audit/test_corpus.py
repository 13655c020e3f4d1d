"""Every labelled case is answered right: nothing is missed, and nothing is a false alarm."""

from __future__ import annotations

import pytest

from reslice.audit.runner import audit
from tests.audit.corpus import Case, answered, cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_is_answered_right(case: Case) -> None:
    assert answered(audit([case.path], case.dialect), case) == case.expected
