"""Stage 3: keys that are the old ones written otherwise.

A key is one text, its parts joined. First those equal in letters and digits; then those that a
template, learned from rows of equal content, makes of the old ones. Only keys that are there once
on both sides are linked, and only where most pairs agree in what is not their key.
"""

from __future__ import annotations

import json

from ploti.model.columns import RECORD_ID
from ploti.model.sql import literal
from ploti.server.build.matching.evidence import find_examples
from ploti.server.build.matching.expressions import (
    content,
    key_text,
    letters_and_digits,
    runs,
)
from ploti.server.build.matching.links import (
    POSITION,
    drop,
    link,
    new_left,
    old_left,
    table,
)
from ploti.server.build.matching.proof import prove
from ploti.server.build.matching.question import Question, Run, Stage, Template
from ploti.server.build.matching.templates import (
    LEARNED,
    PROVED,
    Alignment,
    Form,
    Pair,
    learn,
)


def link_new_forms(run: Run, question: Question) -> Template | None:
    """Link by both ways; gives the template where one was learned and its pairs agree."""
    if not question.key_before or not question.key_now or not question.content:
        return None
    old, new = (letters_and_digits(key_text(k)) for k in (question.key_before, question.key_now))
    _link_forms(run, question, old=old, new=new, stage=Stage.KEY_FORM, evidence="NULL")
    form = learn(_pairs_to_learn_from(run, question))
    if form is None:
        return None
    evidence = literal(json.dumps({"template": form.words}, ensure_ascii=False))
    old, new = _made_and_found(question, form)
    if not _link_forms(
        run, question, old=old, new=new, stage=Stage.KEY_TEMPLATE, evidence=evidence
    ):
        return None
    examples = find_examples(run, question, stage=Stage.KEY_TEMPLATE)
    return Template(form=form.words, examples=tuple((old, new) for old, new, _ in examples))


def _link_forms(
    run: Run, question: Question, *, old: str, new: str, stage: Stage, evidence: str
) -> bool:
    """Link where the two expressions are equal; whether anything was."""
    before = _single(old_left(question), old, handle=RECORD_ID)
    after = _single(new_left(question), new, handle=POSITION)
    pairs = (
        f"SELECT n.handle AS position, o.handle AS record_id "
        f"FROM {before} AS o JOIN {after} AS n USING (form)"
    )
    table(run, "match_forms", pairs)
    proof = prove(run, question, pairs="match_forms")
    shown = proof.columns > 0 and proof.agreeing * 2 >= proof.pairs
    stands = shown and not proof.dealt_anew
    if stands:
        link(run, "FROM match_forms", stage=stage, evidence=evidence)
    drop(run, "match_forms")
    return stands


def _single(relation: str, form: str, *, handle: str) -> str:
    forms = f"SELECT {handle} AS handle, {form} AS form FROM {relation}"
    return (
        f"(SELECT * FROM ({forms}) WHERE form <> '' QUALIFY count(*) OVER (PARTITION BY form) = 1)"
    )


def _pairs_to_learn_from(run: Run, question: Question) -> list[Pair]:
    """Keys of left-over rows whose content is there once on both sides and equal, as runs."""
    fields = content([column.name for column in question.content])
    sides = [
        f"(SELECT any_value({key_text(key)}) AS key, any_value({handle}) AS handle, "
        f"{fields} AS content FROM {relation} GROUP BY {fields} HAVING count(*) = 1)"
        for relation, key, handle in (
            (old_left(question), question.key_before, RECORD_ID),
            (new_left(question), question.key_now, POSITION),
        )
    ]
    rows = run(
        f"SELECT {runs('o.key')}, {runs('n.key')} FROM {sides[0]} AS o JOIN {sides[1]} AS n "
        f"ON o.content = n.content ORDER BY hash(o.handle), o.handle LIMIT {LEARNED + PROVED}"
    )
    return [(_texts(old), _texts(new)) for old, new in rows]


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {value!r}")
    return tuple(str(run) for run in value)


def _made_and_found(question: Question, form: Form) -> tuple[str, str]:
    """The form that old keys take, and the one that new keys have."""
    sides = [runs(key_text(key)) for key in (question.key_before, question.key_now)]
    if form.alignment is Alignment.RIGHT:
        sides = [f"list_reverse({side})" for side in sides]
    return form.sql(sides[0]), f"array_to_string({sides[1]}, '|')"
