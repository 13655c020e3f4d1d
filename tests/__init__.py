import pytest

pytest.register_assert_rewrite("tests.agreement", "tests.crash.scenario")
