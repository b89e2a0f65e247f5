"""What the operator may set, and how a wrong setting is told."""

import pytest

from ploti.errors import ConfigError
from ploti.server.settings import Settings, read_settings


def read(environment: dict[str, str], **given: str | int | bool) -> Settings:
    return read_settings(environment, {}, **{"data": "d", **given})


def test_left_out_everything_has_its_default() -> None:
    assert read({"HOME": "/home/a", "PATH": "/bin"}) == Settings(data="d")


def test_each_variable_is_read_in_its_own_form() -> None:
    settings = read(
        {
            "PLOTI_PUBLIC_URL": "https://feeds.example.org/",
            "PLOTI_FILE_ROOTS": "/srv/a:/srv/b",
            "PLOTI_ALLOW_NETWORKS": "127.0.0.0/8, ::1/128",
            "PLOTI_BUILD_MEMORY": "500MiB",
            "PLOTI_BUILD_SECONDS": "60",
            "PLOTI_MAX_SOURCE": "1000",
            "PLOTI_MAX_WAITS": "50",
            "PLOTI_TEST_CLOCK": "/srv/clock",
        }
    )
    assert settings == Settings(
        data="d",
        public_url="https://feeds.example.org",
        file_roots=("/srv/a", "/srv/b"),
        allow_networks=("127.0.0.0/8", "::1/128"),
        build_memory=500 << 20,
        build_seconds=60,
        max_source=1000,
        max_waits=50,
        test_clock="/srv/clock",
    )


def test_a_flag_wins_over_its_variable() -> None:
    settings = read_settings({"PLOTI_MAX_WAITS": "50"}, {"max_waits": "3"}, data="d")
    assert settings.max_waits == 3


def test_an_unknown_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"^PLOTI_MAX_WAIT is no setting .* PLOTI_MAX_WAITS"):
        read({"PLOTI_MAX_WAIT": "8"})


def test_the_clock_of_tests_is_not_among_the_settings_that_an_operator_is_told() -> None:
    with pytest.raises(ConfigError, match="PLOTI_SECRET_KEYS") as told:
        read({"PLOTI_MAX_WAIT": "8"})
    assert "PLOTI_TEST_CLOCK" not in str(told.value)


def test_alerts_need_a_secret_of_standard_webhooks() -> None:
    address, secret = "https://alerts.example.org/ploti", "whsec_" + "QUFB" * 8
    settings = read({"PLOTI_ALERT_URL": address, "PLOTI_ALERT_SECRET": secret})
    assert (settings.alert_url, settings.alert_secret) == (address, secret)
    with pytest.raises(ConfigError, match="PLOTI_ALERT_URL needs PLOTI_ALERT_SECRET"):
        read({"PLOTI_ALERT_URL": address})
    for wrong in ("s3cret", "whsec_QUFB", "whsec_" + "QUFB" * 8 + "Q"):
        with pytest.raises(ConfigError, match="no secret of Standard Webhooks") as told:
            read({"PLOTI_ALERT_URL": address, "PLOTI_ALERT_SECRET": wrong})
        assert wrong not in str(told.value)


def test_variables_of_sources_are_kept_as_they_stand() -> None:
    variables = {"PLOTI_SOURCE_PERMITS": "k3y", "PLOTI_SOURCE_PERMITS_HOSTS": "data.example.org"}
    assert read(variables).sources == variables


def test_the_clients_own_variables_are_no_error() -> None:
    assert read({"PLOTI_API_KEY": "k", "PLOTI_API_URL": "http://x"}) == Settings(data="d")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLOTI_PUBLIC_URL", "ploti.example.org"),
        ("PLOTI_PUBLIC_URL", "https://ploti.example.org/?a=1"),
        ("PLOTI_FILE_ROOTS", "here"),
        ("PLOTI_ALLOW_NETWORKS", "127.0.0.1/8"),
        ("PLOTI_ALLOW_NETWORKS", "localhost"),
        ("PLOTI_BUILD_MEMORY", "2GB"),
        ("PLOTI_BUILD_MEMORY", "0"),
        ("PLOTI_BUILD_SECONDS", "-1"),
        ("PLOTI_BUILD_SECONDS", "1.5"),
        ("PLOTI_MAX_SOURCE", "much"),
        ("PLOTI_MAX_WAITS", "0"),
        ("PLOTI_TEST_CLOCK", ""),
        ("PLOTI_SECRET_KEYS", "short"),
        ("PLOTI_SECRET_KEYS", "k" * 32 + ","),
    ],
)
def test_a_value_that_cannot_be_meant_is_an_error_that_names_its_variable(
    name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: "):
        read({name: value})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_nothing_more(host: str) -> None:
    assert read({}, host=host).host == host


def test_any_other_address_needs_a_public_url_and_tls_or_an_explicit_risk() -> None:
    public = {"PLOTI_PUBLIC_URL": "https://feeds.example.org"}
    with pytest.raises(ConfigError, match="PLOTI_PUBLIC_URL"):
        read({}, host="0.0.0.0", insecure=True)
    with pytest.raises(ConfigError, match="--behind-proxy"):
        read(public, host="0.0.0.0")
    assert read(public, host="0.0.0.0", behind_proxy=True).behind_proxy
    assert read(public, host="::", insecure=True).insecure


def test_secret_keys_are_a_list_and_the_first_is_the_one_that_writes() -> None:
    keys = ("n" * 32, "o" * 40)
    assert read({"PLOTI_SECRET_KEYS": ", ".join(keys)}).secret_keys == keys


def test_the_secret_of_a_receiver_is_not_the_servers_and_not_in_its_way() -> None:
    assert read({"PLOTI_WEBHOOK_SECRET": "whsec_x"}).secret_keys == ()


def test_a_database_of_postgresql_needs_secrets_and_its_address_is_never_repeated() -> None:
    address = "postgresql://ploti:hidden@db.example/ploti"
    with pytest.raises(ConfigError, match="say PLOTI_SECRET_KEYS too"):
        read({"PLOTI_DATABASE_URL": address})
    kept = {"PLOTI_DATABASE_URL": address, "PLOTI_SECRET_KEYS": "s" * 32}
    assert read(kept).database_url == address
    with pytest.raises(ConfigError, match="PLOTI_DATABASE_URL: is no address such as") as told:
        read({"PLOTI_DATABASE_URL": "mysql://ploti:hidden@db.example/ploti"})
    assert "hidden" not in str(told.value)
