"""Formats of secrets, and ordinary texts that look a little like them.

The secrets are made from a seed, so that none of them was ever valid.
"""

from __future__ import annotations

import random
import string

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
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
DIGITS = string.digits


def made(alphabet: str, length: int) -> str:
    """Return letters of an alphabet, which are the same in every process. The first are two digits and a letter."""
    chance = random.Random(f"{alphabet}{length}")
    letters = [letter for letter in alphabet if letter.isalpha()] or [*alphabet]
    return "".join([*chance.choices(DIGITS, k=2), chance.choice(letters), *chance.choices(alphabet, k=length - 3)])


TOKENS: dict[str, tuple[tuple[str, str, int], ...]] = {
    # what surrounds the token -> prefix, alphabet and length of what follows it
    "use {} here": (
        *(("ghp_", ALNUM, 36), ("gho_", ALNUM, 36), ("ghu_", ALNUM, 36), ("ghs_", ALNUM, 36), ("ghr_", ALNUM, 36)),
        *(("github_pat_", ALNUM, 82), ("glpat-", URLSAFE, 20), ("gldt-", URLSAFE, 20), ("glrt-", URLSAFE, 20)),
        *(("glsoat-", URLSAFE, 20), ("glimt-", URLSAFE, 25), ("glagent-", URLSAFE, 50), ("glffct-", URLSAFE, 20)),
        *(("sk-proj-", URLSAFE, 120), ("sk-svcacct-", URLSAFE, 120), ("sk-admin-", URLSAFE, 120), ("sk-", ALNUM, 48)),
        *(("sk-ant-api03-", URLSAFE, 95), ("sk-ant-admin01-", URLSAFE, 95), ("sk-or-v1-", HEX, 64), ("sk-lf-", HEX, 36)),
        *(("AKIA", UPPER, 16), ("ASIA", UPPER, 16), ("AIza", URLSAFE, 35), ("GOCSPX-", URLSAFE, 28), ("ya29.", URLSAFE, 80)),
        *(("sk_live_", ALNUM, 24), ("rk_live_", ALNUM, 24), ("sk_test_", ALNUM, 24), ("rk_test_", ALNUM, 24)),
        *(
            ("whsec_", ALNUM, 32),
            ("SK", HEX, 32),
            ("key-", HEX, 32),
            ("npm_", ALNUM, 36),
            ("pypi-AgEIcHlwaS5vcmc", URLSAFE, 80),
        ),
        *(("rubygems_", HEX, 48), ("dckr_pat_", URLSAFE, 27), ("dckr_oat_", URLSAFE, 32), ("hf_", ALNUM, 34)),
        *(("api_org_", ALNUM, 34), ("r8_", ALNUM, 37), ("gsk_", ALNUM, 52), ("xai-", ALNUM, 80), ("pplx-", ALNUM, 48)),
        *(("dop_v1_", HEX, 64), ("doo_v1_", HEX, 64), ("dor_v1_", HEX, 64), ("dp.pt.", ALNUM, 43), ("dp.st.", ALNUM, 43)),
        *(
            ("lin_api_", ALNUM, 40),
            ("lin_oauth_", HEX, 64),
            ("secret_", ALNUM, 43),
            ("ntn_", ALNUM, 46),
            ("shpat_", HEX, 32),
        ),
        *(("shpca_", HEX, 32), ("shppa_", HEX, 32), ("shpss_", HEX, 32), ("sq0atp-", URLSAFE, 22), ("sq0csp-", URLSAFE, 43)),
        *(("dapi", HEX, 32), ("hvs.", URLSAFE, 90), ("hvb.", URLSAFE, 140), ("NRAK-", UPPER, 27)),
        *(
            ("sntrys_", ALNUM, 80),
            ("sntryu_", HEX, 64),
            ("HRKU-AA", URLSAFE, 58),
            ("ATATT3", URLSAFE, 186),
            ("sl.", URLSAFE, 140),
        ),
        *(
            ("fm2_", ALNUM, 100),
            ("sbp_", HEX, 40),
            ("pscale_tkn_", URLSAFE, 43),
            ("figd_", URLSAFE, 40),
        ),
        *(("AGE-SECRET-KEY-1", UPPER, 58), ("xoxe-", ALNUM, 40), ("squ_", HEX, 40), ("sqp_", HEX, 40), ("pul-", HEX, 40)),
        *(("sgp_", HEX, 40), ("nfp_", ALNUM, 36), ("xkeysib-", HEX, 64), ("bkua_", HEX, 40)),
        *(("aio_", ALNUM, 28), ("phx_", ALNUM, 43), ("rnd_", ALNUM, 32), ("CLOJARS_", HEX, 60), ("CFPAT-", URLSAFE, 43)),
        *(
            ("rdme_", LOWER, 70),
            ("fio-u-", URLSAFE, 64),
            ("duffel_live_", URLSAFE, 43),
            ("EZAK", ALNUM, 54),
        ),
        *(("shippo_live_", HEX, 40), ("apify_api_", ALNUM, 36), ("jina_", ALNUM, 60), ("e2b_", HEX, 40), ("fc-", HEX, 32)),
        *(("tgp_v1_", URLSAFE, 43), ("llx-", ALNUM, 48), ("napi_", LOWER, 64), ("ddp_", ALNUM, 36), ("re_", ALNUM, 33)),
        *(("wandb_v1_", ALNUM, 77), ("FLWSECK-", HEX, 32), ("oy2", LOWER, 43), ("AKCp", ALNUM, 69)),
        *(
            ("EAAA", URLSAFE, 60),
            ("LTAI", ALNUM, 20),
            ("pnu_", ALNUM, 36),
            ("signkey-prod-", HEX, 64),
            ("tfp_", URLSAFE, 59),
        ),
    ),
}
IN_TWO_PARTS: dict[str, tuple[tuple[str, int], tuple[str, int]]] = {
    "glsa_{}_{}": ((ALNUM, 32), (HEX, 8)),
    "PMAK-{}-{}": ((HEX, 24), (HEX, 34)),
    "tskey-auth-{}-{}": ((ALNUM, 12), (ALNUM, 32)),
    "dt0c01.{}.{}": ((UPPER, 24), (UPPER, 64)),
    "sk.eyJ{}.{}": ((ALNUM, 80), (URLSAFE, 22)),
    "pat{}.{}": ((ALNUM, 14), (HEX, 64)),
    "SG.{}.{}": ((URLSAFE, 22), (URLSAFE, 43)),
    "lsv2_pt_{}_{}": ((HEX, 32), (HEX, 10)),
    "123456789:AA{}{}": ((URLSAFE, 20), (URLSAFE, 13)),
    "xoxb-{}-{}": ((DIGITS, 12), (ALNUM, 24)),
}
ASSIGNED = (
    "API_KEY={}",
    "api_key = '{}'",
    'apiKey: "{}"',
    "OPENAI_API_KEY: {}",
    "export GITHUB_TOKEN={}",
    'client_secret = "{}"',
    "secret: {}",
    "AUTH_TOKEN={}",
    "access_token={}&scope=read",
    '{{"refresh_token": "{}"}}',
    "aws_secret_access_key = {}",
    "PRIVATE_KEY={}",
    "SIGNING_KEY: '{}'",
    "ENCRYPTION_KEY={}",
    "Authorization: Bearer {}",
    'curl -H "Authorization: Bearer {}" https://api.example.com',
    "Authorization: token {}",
    "X-Api-Key: {}",
    "--token {}",
    "--secret-key={}",
    "--auth-token {} --verbose",
    "?api_key={}",
    "//registry.npmjs.org/:_authToken={}",
    "<token>{}</token>",
    "TF_VAR_secret_key={}",
    "DJANGO_SECRET_KEY='{}'",
    "JWT_SECRET={}",
    "session_secret: {}",
    "MASTER_KEY={}",
    "STRIPE_SECRET_KEY: {}",
    "AZURE_CLIENT_SECRET={}",
    "ACCOUNT_KEY={}",
    'os.environ["API_TOKEN"] = "{}"',
    "my token is {}",
)
"""Around a value that a machine made. A placeholder in the same place is ordinary."""
PASSWORDS = (
    "password={}",
    "PASSWORD: '{}'",
    'DB_PASSWORD="{}"',
    "PGPASSWORD={} psql",
    "passwd: {}",
    "pwd={};",
    "Server=db;Uid=app;Pwd={};",
    '{{"password": "{}"}}',
    "passphrase = '{}'",
    "MYSQL_PWD={}",
    "REDIS_PASS={}",
    "smtp_pass: '{}'",
    "curl -u admin:{} https://example.com",
    "curl --user admin:{} https://example.com",
    "https://ada:{}@example.com/x",
    "ftp://ada:{}@example.com",
    "redis://:{}@localhost:6379/0",
    "amqp://guest:{}@localhost:5672//",
    "mssql+pyodbc://sa:{}@db/shop",
    "mariadb -u root -p{} shop",
    "mysqladmin -u root -p{} status",
    "mysql --password={} shop",
    "sshpass -p '{}' ssh ada@example.com",
    "machine example.com login ada password {}",
    "ansible_password: {}",
    "the password is {}",
    "<password>{}</password>",
    "Passwort: {}",
)
"""Around a password that a person chose."""
PLACEHOLDERS = (
    "YOUR_API_KEY",
    "<your-token>",
    "$TOKEN",
    "${API_TOKEN}",
    "{{ token }}",
    "xxxxxxxxxxxx",
    "********",
    "changeme",
)
PASSWORD = "Tr0ub4dor-3xyz"  # the one that everybody knows, slightly changed


def _formats() -> list[tuple[str, str]]:
    tokens = [
        (around, prefix + made(alphabet, length)) for around, rows in TOKENS.items() for prefix, alphabet, length in rows
    ]
    assigned = [(around, made(ALNUM, 40)) for around in ASSIGNED]
    in_parts = [("use {} here", row.format(*(made(*part) for part in parts))) for row, parts in IN_TWO_PARTS.items()]
    return [*FORMS, *tokens, *in_parts, *assigned, *((around, PASSWORD) for around in PASSWORDS)]


FORMATS = _formats()
"""A text with a {} where the secret is, and the secret. Braces of the text itself are doubled."""

EMPTY_FORMATS = [around.format(placeholder) for around in (*ASSIGNED, *PASSWORDS) for placeholder in PLACEHOLDERS]
"""The same texts with a placeholder."""

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
