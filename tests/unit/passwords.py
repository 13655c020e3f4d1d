"""Passwords to look for in everything that is said, whole and in parts."""

from __future__ import annotations

from hypothesis import strategies as st

LETTERS = "qzjxQZJX"
"""Letters that stand together in no word of a message."""

_PIECES = st.one_of(
    st.text(LETTERS, min_size=4, max_size=6),
    st.sampled_from([*":/@?#&=%[];,'\"\\$ {}~!", "é", "€", "%41", "%", "://", "\t"]),
)
PASSWORDS = st.lists(_PIECES, min_size=2, max_size=7).map("".join).filter(lambda text: any(c in text for c in LETTERS))


def shows_part(said: str, password: str) -> bool:
    """Whether four letters of a password that stand together in it are in what was said."""
    windows = (password[at : at + 4] for at in range(len(password) - 3))
    return any(window in said for window in windows if all(letter in LETTERS for letter in window))
