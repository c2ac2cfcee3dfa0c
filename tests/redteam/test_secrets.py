"""Formats of secrets that were once stored, and ordinary texts that look a little like them."""

from __future__ import annotations

import pytest

from foveate.server.tokens import Tokens
from foveate.testing import engine
from foveate.text.redact import redact

RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9bC1dE3fG5"
BASE64 = "YWRhOnMzY3JldFBhc3N3MHJkMTIzNDU2Nzg5MDEyMzQ1Njc4OTA"
LINES = f"{RANDOM}\n{RANDOM[::-1]}\n"
PREFIXES = "glptt- glcbt- gloas- glft- nvapi- pcsk_ tvly- ABSK ops_ CCIPAT_ squ_".split()  # noqa: SIM905
FORMS = [
    # text with a {} where the secret is, the secret
    *[("use {} here", prefix + RANDOM) for prefix in PREFIXES],
    ("abcdEFGH123456.atlasv1.{}", RANDOM * 2),
    ("postgres://app:{}@db.example.com/x", "p/ss@w0rd-XYZ"),
    ("postgresql+asyncpg://app:{}@db.example.com:5432/x", "pa@ss123word"),
    ("mysql://root:{}@localhost/shop", "a/b/c@d1"),
    ("mongodb+srv://u:{}@cluster0.example.net/?w=1", "x@y@z9z9"),
    ("DB_PASS={}", "hunter2hunter2"),
    ("export SMTP_PASS='{}'", "correct-horse-7"),
    ("STRIPE_KEY={}", RANDOM),
    ("SECRET_KEY = '{}'", "django-insecure-9f" + RANDOM),
    ("tool --api-key {} run", RANDOM),
    ("tool --api-key={}", RANDOM),
    ("tool --access-token '{}'", RANDOM),
    ("mysql -u root -p{} shop", "S3cretPassw0rd"),
    ("mysqldump --single-transaction -p'{}' shop", "S3cretPassw0rd"),
    ("machine api.example.com login ada password {}", "s3cretPassw0rd"),
    ("machine api.example.com\n  login ada\n  password {}\n", "s3cretPassw0rd"),
    ('{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{}"}}}}}}', BASE64),
    ("users:\n- user:\n    client-key-data: {}\n", BASE64),
    ("PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 2\n{}Private-MAC: 01234567", LINES),
]
ORDINARY = [
    "GET http://localhost:5432/users@home HTTP/1.1",
    "postgresql://localhost:5432/shop@v2",
    "postgres://user:password@localhost/db",
    "postgres://localhost/db and mail to ada@example.com",
    "redis://localhost:6379/0, ask ops@example.com",
    "mysql://db.example.com:3306/shop",
    "mysql -u root -p shop < dump.sql",
    "mysql -P 3307 -h db.example.com shop",
    "mysql -ppassword",
    "mysql --port 3306 --protocol tcp",
    "PRIMARY_KEY=user_id",
    "PUBLIC_KEY=" + RANDOM,
    "FOREIGN_KEY = orders.customer_id",
    "CACHE_KEY=users:profile:v2",
    "SORT_KEY=created_at",
    "PARTITION_KEY=tenant_id_and_region",
    "DB_PASS=$DB_PASS",
    "DB_PASS=<your password>",
    "first_pass=True",
    "second_pass: 2",
    "tests_pass = all(results)",
    "tool --api-key $API_KEY",
    "tool --api-key YOUR_API_KEY",
    "tool --api-key-file /run/keys/api",
    "--auth-token is an option of the tool",
    "--access-key takes a name",
    "The machine learning login needs a password policy.",
    "machine: build-7, login: ada",
    '{"auth": "required"}',
    '{"auth": "basic", "user": "ada"}',
    '"auth": {"type": "oauth2"}',
    "client-key-data: <base64>",
    "client-certificate-data: see the docs",
    "Private-Lines: 8 are the key",
    "PuTTY-User-Key-File-3 is a format",
    "fov_ begins every token of the service",
    "fov_1a2b3c4d is its id",
    "ops_transform_all_records_of_the_warehouse",
    "ops_team_on_call_rotation_for_november_2026",
    "squ_are root of the sum",
    "squ_normalised_vector_of_the_embedding",
    "ABSKEY is a column",
    "ABSKILLEDWORKERSOFTHEFACTORYWITHOUTANYDIGITS",
    "nvapi-documentation-and-examples-for-developers",
    "tvly-style-naming-of-a-package-with-long-names",
    "pcsk_inhibitors_and_cholesterol_in_clinical_trials",
    "CCIPAT_TERNS_OF_LONG_CONSTANTS_IN_UPPER_CASE",
    "glft-and-other-abbreviations-of-the-handbook",
    "gloas-is-a-welsh-place-name-with-hyphens",
    "the file is named x.atlasv1.json",
    "key: value pairs of the config",
    "KEYBOARD_KEY=Escape",
    "REDIS_KEY=session:*",
    "S3_KEY=backups/2026/11/state.db",
    "passport=1234567",
    "bypass=true",
    "compass: north by northwest",
    "encompass_pass=first",
    "mariadb -e 'select 1'",
    "amqp://localhost:5672/shop@v2",
    "https://example.com:8080/a@b",
    "ssh://git@github.com:22/o/r.git",
]


@pytest.mark.parametrize(("template", "secret"), FORMS, ids=[template[:40] for template, _ in FORMS])
def test_a_secret_is_not_stored(template: str, secret: str) -> None:
    text = template.format(secret)
    redacted = redact(text).text
    assert secret not in redacted
    assert redact(redacted).text == redacted
    before, after = (part for part in template.format("\0").split("\0"))
    assert redacted.startswith(before.rstrip("'\""))
    assert redacted.endswith(after)
    with engine() as memory:
        assert secret not in memory.add("note", text).record.text


def test_tokens_of_the_service_are_not_stored(tmp_path: object) -> None:
    from pathlib import Path

    _, secret = Tokens(Path(str(tmp_path)) / "tokens.json").create("test", ["admin"], "main")
    assert secret not in redact(f"curl -H 'X-Token: {secret}' localhost:8377").text


def test_there_are_sixty_two_ordinary_texts() -> None:
    assert len(set(ORDINARY)) == 62


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text).text == text
