"""The OpenAPI document: valid, whole, and true of what is answered."""

from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.integration.running import Running


@pytest.fixture(scope="module")
def document(api: Running) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/openapi.json", key=None).json()
    return found


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def check(document: dict[str, Any], name: str, value: object) -> None:
    """Hold a value against a component of the document."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    assert [error.message for error in OAS31Validator(schema).iter_errors(value)] == []


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_every_operation_tells_its_parameters_answers_and_problems(
    document: dict[str, Any],
) -> None:
    assert len(operations(document)) >= 28
    for operation in operations(document):
        assert operation["summary"].endswith(".")
        answers = operation["responses"]
        assert answers["default"]["content"].keys() == {"application/problem+json"}
        assert not operation["security"] or {"401", "403"} <= answers.keys()
        in_path = [one for one in operation["parameters"] if one["in"] == "path"]
        assert not in_path or "404" in answers or operation["operationId"] == "applyDataset"
    names = [operation["operationId"] for operation in operations(document)]
    assert len(set(names)) == len(names)


def test_a_body_that_is_taken_refuses_unknown_fields_in_the_document_too(
    document: dict[str, Any],
) -> None:
    for name in ("NewSubscription", "SubscriptionPatch", "Decision"):
        assert document["components"]["schemas"][name]["additionalProperties"] is False


def test_answers_are_as_the_document_says(api: Running, document: dict[str, Any]) -> None:
    api.declare("ds_a", license="CC0-1.0")
    new = {"datasets": ["ds_a"], "places": ["us/fl"]}
    made = api.send("POST", "/v1/feeds/subscriptions", json=new).json()
    check(document, "Subscription", made)
    log = f"/v1/feeds/subscriptions/{made['id']}"
    for path, name in (
        (f"{log}/events", "EventPage"),
        (f"{log}/manifest", "Manifest"),
        ("/v1/feeds/subscriptions", "SubscriptionPage"),
        ("/v1/feeds/datasets", "DatasetPage"),
        ("/v1/feeds/datasets/ds_a", "Dataset"),
        ("/v1/feeds/datasets/ds_a/versions", "VersionPage"),
        ("/v1/feeds/datasets/ds_b", "Problem"),
        ("/v1/feeds/datasets?limit=x", "Problem"),
        ("/healthz", "Health"),
    ):
        check(document, name, api.get(path).json())
    for path, name in (
        ("/v1/admin/datasets", "AdminDatasetPage"),
        ("/v1/admin/datasets/ds_a", "AdminDataset"),
        ("/v1/admin/holds", "HoldPage"),
    ):
        check(document, name, api.staff("GET", path).json())


def test_an_event_of_one_type_with_the_data_of_another_is_none_by_the_document(
    api: Running, document: dict[str, Any]
) -> None:
    event = {
        "id": "evt_000000000001",
        "type": "feed.dataset.removed",
        "timestamp": "2026-11-30T12:00:00.000Z",
        "subscriptionId": "sub_a",
        "data": {"datasetId": "ds_a", "reason": "left_coverage"},
    }
    check(document, "Event", event)
    with pytest.raises(AssertionError):
        check(document, "Event", event | {"type": "feed.dataset.updated"})


def test_a_link_to_a_file_is_told_with_its_query_and_all_its_answers(
    document: dict[str, Any],
) -> None:
    operation = document["paths"]["/files/{blob}"]["get"]
    query = [each["name"] for each in operation["parameters"] if each["in"] == "query"]
    assert query == ["expires", "file", "key", "sha256", "signature"]
    assert {"200", "206", "304", "403", "404", "416"} <= operation["responses"].keys()


def test_conflicts_and_what_is_still_being_made_are_told(document: dict[str, Any]) -> None:
    datasets = "/v1/feeds/datasets/{dataset}"
    assert "409" in document["paths"][datasets]["get"]["responses"]
    for path in (f"{datasets}/versions/{{version}}", f"{datasets}/current/snapshot"):
        assert {"409", "410", "503"} <= document["paths"][path]["get"]["responses"].keys()
