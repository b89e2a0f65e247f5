"""The public surface: the exact names at the root, and what they do not load."""

import inspect
import sys

import pytest

import ploti
from ploti import errors

LAZY = {"AsyncClient", "Client", "__version__", "feeds", "model", "sync", "webhooks"}


def classes_of_errors() -> set[str]:
    return {
        name
        for name, each in vars(errors).items()
        if inspect.isclass(each) and issubclass(each, errors.PlotiError)
    }


def test_the_root_has_the_errors_by_name() -> None:
    for name in classes_of_errors():
        assert getattr(ploti, name) is getattr(errors, name)


def test_the_root_shows_no_other_names() -> None:
    submodules = {name.split(".")[1] for name in sys.modules if name.startswith("ploti.")}
    names = {name for name in vars(ploti) if not name.startswith("_")}
    assert names <= classes_of_errors() | LAZY | submodules | {
        "errors",
        "annotations",
        "TYPE_CHECKING",
    }


@pytest.mark.parametrize("name", ["nothing", "webhook", "_client"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(ploti, name)


def test_the_feeds_are_those_of_one_default_client() -> None:
    assert ploti.feeds is ploti.feeds
    assert isinstance(ploti.feeds, type(ploti.Client("k").feeds))
    assert callable(ploti.feeds.sync)


def test_the_version_is_the_installed_one() -> None:
    assert ploti.__version__[0].isdigit()
