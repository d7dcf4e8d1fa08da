"""What is secret, and text without it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow import masker as masker_module
from evenflow.masker import Masker, _FormSearch, masker_of
from evenflow.sdk.secrets.masking import MAX_FORM_BYTES, MAX_FORMS, MIN_LENGTH, forms, secrets_in


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


def test_base64_of_a_secret_is_masked() -> None:
    """Also inside of more, as HTTP's Basic has it, wherever it begins there."""
    masker = Masker()
    masker.add(["pass>?word/ü"])
    for login in ("", "l", "lo", "log", "login:", "a-login:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            shown = encode(f"{login}pass>?word/ü".encode()).decode()
            left = masker.mask_text(f"Authorization: Basic {shown} end")
            assert "***" in left
            assert left.endswith(" end")
            begun = len(login.encode()) * 8 // 6
            assert all(shown[at : at + 4] not in left for at in range(begun + 2, len(shown) - 6))


class Naive:
    """What is masked, said in the plainest way: at each place the longest form that begins there."""

    def __init__(self, forms: set[bytes]) -> None:
        self.forms = sorted(forms, key=len, reverse=True)

    def mask(self, data: bytes) -> bytes:
        shown, at = b"", 0
        while at < len(data):
            found = next((form for form in self.forms if data.startswith(form, at)), None)
            shown += data[at : at + 1] if found is None else b"***"
            at += 1 if found is None else len(found)
        return shown

    def tail_to_keep(self, data: bytes) -> int:
        tails = range(1, len(data) + 1)
        return max((size for size in tails for form in self.forms if len(form) > size and form.startswith(data[-size:])), default=0)


SECRETS = st.sets(st.text("ab-", min_size=5, max_size=12), min_size=1, max_size=6)


@given(SECRETS, st.text("ab-*", max_size=80), st.data())
def test_it_masks_what_a_naive_one_masks(secrets: set[str], text: str, chooser: st.DataObject) -> None:
    """Wherever the text, made of pieces of the secrets, is cut for the search, and wherever the log is."""
    parts = chooser.draw(st.lists(st.sampled_from(sorted(secrets)) | st.text("ab-", max_size=4), max_size=8))
    data = "".join([text, *parts]).encode()
    masker, naive = Masker(), Naive({form.encode() for secret in secrets for form in forms(secret) if len(form) >= MIN_LENGTH})
    assert masker.add(secrets)
    masker._search = len(masker._forms), _FormSearch(masker._forms, piece=1)  # as small as it can be
    shown = naive.mask(data)
    assert masker.mask(data) == shown
    assert masker.finds_in(data) == (shown != data)
    assert masker.tail_to_keep(shown) == naive.tail_to_keep(shown)


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
    assert not masker.add(f"secret-number-{number:05}" for number in range(100_000))
    assert not masker.add(["x" * 100_000])
    assert masker.mask_text("secret-number-00000") == "***"
    assert masker.mask_text("secret-number-99999 " + "x" * 100_000).startswith("secret-number-99999 xxx")


def test_it_says_when_there_are_more_than_it_masks() -> None:
    masker = Masker()
    said = [masker.add(f"{group}-secret-{number:05}" for number in range(200)) for group in range(20)]
    assert said[0]
    assert not said[-1]
    assert masker.add(["0-secret-00000"]), "one that is known"
    assert len(masker._forms) <= MAX_FORMS
    large = Masker()
    assert False in [large.add([f"{number}" * 60_000]) for number in range(10)]
    assert large._size <= MAX_FORM_BYTES


def test_what_is_learnt_while_a_thread_prepares_its_search_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large values are searched in threads, and a try learns secrets meanwhile."""
    masker = Masker()
    masker.add(["first-secret"])
    made = masker_module._FormSearch

    def slow(forms: set[bytes]) -> object:
        search = made(forms)
        masker.add(["second-secret"])
        return search

    monkeypatch.setattr(masker_module, "_FormSearch", slow)
    assert masker.mask(b"first-secret") == b"***"
    assert masker.mask(b"second-secret") == b"***"
