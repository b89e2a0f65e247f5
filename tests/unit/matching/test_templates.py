"""The template by which new keys are made of old ones."""

import re

import pytest

from ploti.server.build.matching.templates import Form, Pair, Runs, aligned, learn


def runs(key: str) -> Runs:
    found = re.findall(r"[a-z]+|[0-9]+", key.lower())
    return tuple(re.sub(r"^0+(.)", r"\1", run) for run in found)


def pairs(old: list[str], new: list[str]) -> list[Pair]:
    return [(runs(a), runs(b)) for a, b in zip(old, new, strict=True)]


def made(form: Form, key: str) -> Runs:
    return aligned(form.make(aligned(runs(key), form.alignment)), form.alignment)


OLD = [f"2016-{i:06d} {'BP' if i % 3 else 'MEP'}" for i in range(1, 91)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda k: f"TX-{k}", "'tx' 1 2 3, counted from the left"),
        (lambda k: f"{k}/A", "1 2 3 'a', counted from the left"),
        (lambda k: "-".join(reversed(re.split(r"[- ]", k))), "3 2 1, counted from the left"),
        (lambda k: k[:5] + str(int(k[5:11]) + 5000) + k[11:], "1 2+5000 3, counted from the left"),
        (lambda k: k[5:], "2 3, counted from the left"),
    ],
)
def test_a_form_is_learned(change: object, words: str) -> None:
    form = learn(pairs(OLD, [change(key) for key in OLD]))
    assert form is not None
    assert form.words == words
    assert made(form, "2016-000777 BP") == runs(change("2016-000777 BP"))


def test_a_suffix_to_keys_of_unlike_length_is_counted_from_the_right() -> None:
    old = [f"{'A' if i % 2 else ''}{i}" for i in range(1, 61)]
    form = learn(pairs(old, [f"{key}-x" for key in old]))
    assert form is not None
    assert form.words == "'x' 1 2, counted from the right"
    assert made(form, "A9") == ("a", "9", "x")
    assert made(form, "9") == ("9", "x")


def test_a_new_sequence_has_no_form() -> None:
    assert learn(pairs(OLD, [str((i * 37) % 997) for i in range(90)])) is None


def test_two_in_a_hundred_may_differ_and_not_more() -> None:
    new = [f"TX-{key}" for key in OLD] * 4
    spoiled = [*new[:-60], *["x"] * 60]
    assert learn(pairs(OLD * 4, [*new[:-2], "x", "y"])) is not None
    assert learn(pairs(OLD * 4, spoiled)) is None


def test_fewer_than_thirty_pairs_prove_nothing() -> None:
    assert learn(pairs(OLD[:29], OLD[:29])) is None


def test_numbers_too_long_to_add_to_are_copied_only() -> None:
    old = [f"{i:030d}7{i:019d}" for i in range(1, 61)]
    assert learn(pairs(old, old)) is not None


def test_keys_of_very_many_parts_have_no_form() -> None:
    many = ["-".join([key] * 9) for key in OLD]
    assert learn(pairs(OLD, many)) is None
