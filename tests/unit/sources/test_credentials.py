"""Credentials of sources, as the operator's variables give them."""

import pytest

from ploti.errors import ConfigError
from ploti.server.sources.credentials import read_credentials


def test_credentials_of_sources_are_read_with_the_hosts_that_may_get_them() -> None:
    found = read_credentials(
        {
            "PLOTI_SOURCE_PERMITS": "k3y",
            "PLOTI_SOURCE_PERMITS_HOSTS": "Data.example.org, gis.example.org:6443",
        }
    )
    credential = found["PERMITS"]
    assert credential.secret == "k3y"
    assert credential.hosts == ("data.example.org", "gis.example.org:6443")
    assert "k3y" not in repr(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"PLOTI_SOURCE_A": "k"}, "name its hosts in PLOTI_SOURCE_A_HOSTS"),
        ({"PLOTI_SOURCE_A_HOSTS": "a.org"}, "has no PLOTI_SOURCE_A beside it"),
        ({"PLOTI_SOURCE_a": "k", "PLOTI_SOURCE_a_HOSTS": "a.org"}, "not the name of a credential"),
        ({"PLOTI_SOURCE_A": "k\n", "PLOTI_SOURCE_A_HOSTS": "a.org"}, "one line"),
        ({"PLOTI_SOURCE_A": "k", "PLOTI_SOURCE_A_HOSTS": "https://a.org"}, "is no host"),
    ],
)
def test_a_credential_that_cannot_be_meant_is_an_error_that_names_its_variable(
    given: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read_credentials(given)
    assert "PLOTI_SOURCE_" in str(caught.value)
