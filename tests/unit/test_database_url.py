"""URLs of shared stores: recognition, environment variables and hidden passwords."""

from __future__ import annotations

import pytest

from foveate.errors import InputError
from foveate.store.database_url import expand_env, has_password, is_url, mask_passwords, refers_to_database


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("postgresql://ada@db/shop", True),
        ("postgres://db", True),
        ("./postgresql", False),
        ("sqlite:/x", False),
        (None, False),
    ],
)
def test_a_url_is_distinguished_from_a_path(text: str | None, wanted: bool) -> None:
    assert is_url(text) is wanted
    assert text is None or refers_to_database(text) is wanted


def test_a_variable_may_name_a_database() -> None:
    assert refers_to_database("$DATABASE_URL")
    assert not refers_to_database("$HOME/shop")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada@db/shop", "postgresql://ada@db/shop"),
        ("postgresql://ada:s3cret@db:5432/shop", "postgresql://ada:***@db:5432/shop"),
        ("postgresql://ada:s3:c@r/e?t@one,two:5433/shop", "postgresql://ada:***@one,two:5433/shop"),
        ("postgresql://:s3cret@db", "postgresql://:***@db"),
        ("postgresql:///shop?host=/run&password=s3cret&user=ada", "postgresql:///shop?host=/run&password=***&user=ada"),
        ("postgresql:///shop?pass%77ord=s3cret&sslpassword=s3cret", "postgresql:///shop?pass%77ord=***&sslpassword=***"),
        (
            "postgresql://db?oauth_client_secret=s3cret&scram_client_key=s3cret",
            "postgresql://db?oauth_client_secret=***&scram_client_key=***",
        ),
        (
            "host=db oauth_client_secret='s3 cret' scram_client_key=s3cret",
            "host=db oauth_client_secret=*** scram_client_key=***",
        ),
        ("postgresql://db:5432/shop", "postgresql://db:5432/shop"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert mask_passwords(url) == shown
    assert has_password(url) is (url != shown)


def test_a_variable_is_not_a_password() -> None:
    assert not has_password("postgresql://ada:$FOVEATE_PASSWORD@db/shop")
    assert has_password("postgresql://ada:x$FOVEATE_PASSWORD@db/shop")


def test_environment_variables_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_PASSWORD", "s3cret")
    monkeypatch.setenv("PGHOST", "db")
    monkeypatch.setenv("DATABASE_URL", "postgres://whole")
    assert expand_env("postgresql://ada:${FOVEATE_PASSWORD}@$PGHOST/shop") == "postgresql://ada:s3cret@db/shop"
    assert expand_env("$DATABASE_URL") == "postgres://whole"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://$FOVEATE_GONE@db", "FOVEATE_GONE, which is not set"),
        ("postgresql://evil/$CLOUD_SECRET", r"got \$CLOUD_SECRET"),
        ("$NO_URL", "must begin with postgresql://"),
        ("./state.db", "must begin with postgresql://"),
    ],
)
def test_unset_and_forbidden_variables_are_refused(url: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_SECRET", "s3cret")
    monkeypatch.setenv("NO_URL", "s3cret")
    with pytest.raises(InputError, match=problem) as caught:
        expand_env(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["sqlite:///x", "mysql://u:s3cret@h/d", "POSTGRESQL://u:s3cret@h", "postgresql+psycopg://u:s3cret@h"]
)
def test_the_error_for_another_scheme_does_not_show_the_url(text: str) -> None:
    with pytest.raises(InputError, match="a URL that begins with postgresql://") as refused:
        is_url(text)
    assert "s3cret" not in str(refused.value)


def test_a_user_with_an_at_sign_does_not_show_the_password() -> None:
    assert "s3cret" not in mask_passwords("postgresql://u@corp:s3cret@host/db")
