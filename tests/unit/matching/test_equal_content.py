"""Stage 4: rows that are equal in every compared column, the key's apart."""

from tests.unit.matching.tables import PERMIT, matched, permits, shuffled

from ploti.server.build.matching.question import Stage

HOME = {"street": "string", "use": "string"}
KEYED = {"permit": "string", **HOME}


def home(street: str, use: str = "home") -> dict[str, object]:
    return {"street": street, "use": use}


def keyed(permit: str, street: str) -> dict[str, object]:
    return {"permit": permit, **home(street)}


def test_b11_without_a_key_equal_rows_are_counted_not_merged() -> None:
    before = [home("A ST"), home("A ST"), home("B ST", "shop")]
    after = [home("A ST"), home("A ST"), home("A ST"), home("B ST", "shop")]
    found = matched(before, after, types=HOME)
    assert found.links == {0: 0, 1: 1, 3: 2}
    assert found.report.links == {Stage.CONTENT: 3}


def test_b03_rows_in_another_order_are_the_same_records() -> None:
    old = permits(50)
    new, order = shuffled(old, seed=7)
    assert matched(old, new, types=PERMIT).links == dict(enumerate(order))


def test_b07_renumbered_permits_keep_every_id() -> None:
    old = permits(40)
    new = [{**row, "permit": f"N{(i * 17) % 41}"} for i, row in enumerate(old)]
    found = matched(old, new, types=PERMIT, key=["permit"])
    assert found.links == {i: i for i in range(40)}
    assert found.report.links == {Stage.CONTENT: 40}


def test_with_another_key_groups_of_one_size_are_paired_in_the_order_of_their_keys() -> None:
    streets = {"9": "A", "10": "A", "1": "B"}
    old = [{**keyed("", street), "code": code} for code, street in streets.items()]
    new = [keyed("n110", "A"), keyed("n109", "A"), keyed("n1", "B")]
    found = matched(
        old,
        new,
        types={**KEYED, "code": "string"},
        key=["permit"],
        key_before=["code"],
        old_only=["code"],
    )
    assert found.links == {0: 1, 1: 0, 2: 2}


def test_with_another_key_groups_of_unlike_size_are_for_staff() -> None:
    old = [{**keyed(str(i), "A"), "code": str(i)} for i in range(3)]
    new = [keyed(str(i), "A") for i in range(2)]
    found = matched(
        old,
        new,
        types={**KEYED, "code": "string"},
        key=["permit"],
        key_before=["code"],
        old_only=["code"],
    )
    assert found.links == {}
    assert found.proposals == {0: 0, 1: 1}


def test_ignored_columns_are_not_compared() -> None:
    old = permits(30)
    new = [{**row, "value": i} for i, row in enumerate(old)]
    found = matched(old, new, types=PERMIT, ignored=["value"])
    assert found.report.links == {Stage.CONTENT: 30}


def test_null_is_equal_to_null_in_whole_rows() -> None:
    rows = [{"street": "A", "use": None}]
    assert matched(rows, rows, types=HOME).links == {0: 0}


def test_of_rows_equal_in_all_but_ignored_columns_the_order_of_the_source_decides_nothing() -> None:
    old = [{**home("A ST"), "seen": i} for i in range(3)]
    new = [{**home("A ST"), "seen": i} for i in (30, 10, 20)]
    types = {**HOME, "seen": "int64"}
    assert matched(old, new, types=types, ignored=["seen"]).links == {1: 0, 2: 1, 0: 2}
    fresh = {"types": types, "new_only": ["seen"]}
    assert matched([home("A ST")] * 3, new, **fresh).links == {1: 0, 2: 1, 0: 2}
