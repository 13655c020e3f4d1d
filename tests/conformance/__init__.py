"""Conformance: one suite, written once, for every engine."""

import pytest

pytest.register_assert_rewrite("tests.conformance.orders")
