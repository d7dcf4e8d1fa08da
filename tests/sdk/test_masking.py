"""What is secret, and text without it."""

from __future__ import annotations

import pytest

from evenflow.sdk.masking import Masker, masker_of, secrets_in


@pytest.mark.parametrize(
    ("kind", "name", "text", "secrets"),
    [
        ("connection", "db", "x://me:pa%20ss@host/?token=abc&mode=fast", ["pa ss", "abc"]),
        ("connection", "db", 'x://h/?__extra__={"deep": {"private_key": "k"}}', ["k"]),
        ("connection", "db", "x://me:secret@host:port/", ["x://me:secret@host:port/"]),
        ("variable", "region", "eu", []),
        ("variable", "API-Key", "abc", ["abc"]),
        ("variable", "all", '{"rows": 1, "passwords": ["a", 2]}', ["a", "2"]),
    ],
)
def test_what_is_secret(kind: str, name: str, text: str, secrets: list[str]) -> None:
    assert secrets_in(kind, name, text) == secrets  # type: ignore[arg-type]


def test_every_form_of_a_secret_is_masked() -> None:
    masker = Masker()
    masker.add(['pa"ss/wörd'])
    for shown in ('pa"ss/wörd', "pa%22ss%2Fw%C3%B6rd", 'pa\\"ss/wörd', 'pa\\"ss/w\\u00f6rd'):
        assert masker.mask_text(f"<{shown}>") == "<***>"
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----"
    masker.add([key])
    assert masker.mask_text("log: MIIEvQIBADANBg") == "log: ***"
    assert masker.mask_value({"a": [key, 1, None]}) == {"a": ["***", 1, None]}


@pytest.mark.parametrize("size", range(1, 30))
def test_it_does_not_matter_where_it_is_cut(size: int) -> None:
    masker = Masker()
    masker.add(["aab-aac-secret", "caab-x"])
    text, shown, kept = b"xx aab-aab-aac-secret caaab-aac-secret caab-x aab-aac-secre", b"", b""
    for start in range(0, len(text), size):
        kept = masker.mask(kept + text[start : start + size])
        keep = masker.tail_to_keep(kept)
        shown, kept = shown + kept[: len(kept) - keep], kept[len(kept) - keep :]
    assert shown + kept == masker.mask(text)
    assert b"aac-secret " not in shown


def test_short_values_would_mask_everything() -> None:
    masker = masker_of({"EVENFLOW_CONN_A": "x://me:me@h/", "EVENFLOW_VAR_TOKEN": "long-enough", "PATH": "long-enough"})
    assert masker.mask_text("me long-enough") == "me ***"


def test_a_try_cannot_make_its_worker_look_for_anything_at_length() -> None:
    """One worker masks what many tries print."""
    masker = Masker()
    masker.add(f"secret-number-{number:05}" for number in range(100_000))
    masker.add(["x" * 100_000])
    assert masker.mask_text("secret-number-00000") == "***"
    assert masker.mask_text("secret-number-99999 " + "x" * 100_000).startswith("secret-number-99999 xxx")
