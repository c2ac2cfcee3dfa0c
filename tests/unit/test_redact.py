"""Secrets are replaced, what only looks like one is not, and neither takes long.

The planted secrets are put together here from pieces, so that this file holds no whole token.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.text.redact import RedactionResult, load_allow_list, load_rules, redact, redact_value

ALNUM = "a8Kd93jfQ0zLx7Tb2WnV5rYc6HmP1sGu4EoJiRkD" * 6
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" * 4
UPPER = "Q7ZX2M5KD9R4T8WB3N6H" * 4
PEM_BODY = "\n".join(ALNUM[i : i + 64] for i in range(0, 192, 64))
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def pem(kind: str = "RSA ", end: bool = True) -> str:
    dashes = "-" * 5
    closing = f"\n{dashes}END {kind}PRIVATE KEY{dashes}" if end else ""
    return f"{dashes}BEGIN {kind}PRIVATE KEY{dashes}\n{PEM_BODY}{closing}"


PLANTED = [
    # kind, text with a {} where the secret is, the secret
    ("age_key", "key {} kept", "AGE-" + "SECRET-KEY-1" + UPPER[:58]),
    ("anthropic", "export KEY={}", "sk" + "-ant-api03-" + ALNUM[:90]),
    ("openai", "use {} here", "sk" + "-" + ALNUM[:48]),
    ("openai", "use {} here", "sk" + "-proj-" + ALNUM[:100]),
    ("aws_key", "id={};", "AK" + "IA" + UPPER[:16]),
    ("aws_key", "id={};", "AS" + "IA" + UPPER[:16]),
    ("aws_secret", "aws_secret_access_key = {}", ALNUM[:38] + "/+"),
    ("aws_secret", '"SecretAccessKey": "{}"', ALNUM[:38] + "+/"),
    *[("github", "clone with {}.", "gh" + letter + "_" + ALNUM[:36]) for letter in "pousr"],
    ("github", "clone with {}.", "github" + "_pat_" + ALNUM[:22] + "_" + ALNUM[:59]),
    ("foveate", "Bearer-less {} kept", "fo" + "v_1a2b3c4d_" + ALNUM[:43]),
    ("nvidia", "use {} here", "nv" + "api-" + ALNUM[:60]),
    ("pinecone", "use {} here", "pc" + "sk_" + ALNUM[:40]),
    ("tavily", "use {} here", "tv" + "ly-" + ALNUM[:32]),
    ("bedrock", "use {} here", "AB" + "SK" + ALNUM[:60]),
    ("circleci", "use {} here", "CCI" + "PAT_" + ALNUM[:40]),
    ("sonar", "use {} here", "sq" + "u_" + HEX[:40]),
    ("terraform", "use abcdEFGH123456.atlasv1.{} here", ALNUM[:67]),
    ("onepassword", "use {} here", "op" + "s_eyJ" + ALNUM[:60]),
    ("gitlab", "ci uses {}", "gl" + "pat-" + ALNUM[:20]),
    ("google", "maps?key={}&x=1", "AI" + "za" + ALNUM[:35]),
    ("google", "oauth {}", "GOC" + "SPX-" + ALNUM[:28]),
    ("google", "oauth {}", "ya" + "29." + ALNUM[:60]),
    ("gcp_key", '{{"type": "service_account", "private_key": "{}"}}', pem("").replace("\n", "\\n")),
    *[("slack", "bot {}", "xo" + f"x{letter}-1234567890-" + ALNUM[:24]) for letter in "abprs"],
    ("slack", "app {}", "xa" + "pp-1-A012345-" + ALNUM[:40]),
    ("slack_webhook", "https://hooks.slack.com/{}", "services/T01234567/B01234567/" + ALNUM[:24]),
    ("stripe", "pay {}", "sk" + "_live_" + ALNUM[:24]),
    ("stripe", "pay {}", "rk" + "_live_" + ALNUM[:24]),
    ("stripe", "sign {}", "whs" + "ec_" + ALNUM[:32]),
    ("twilio", "sid {}", "S" + "K" + HEX[:32]),
    ("twilio", "TWILIO_AUTH={}", HEX[:32]),
    ("twilio", "TWILIO_ACCOUNT_SID={}", "A" + "C" + HEX[:32]),
    ("sendgrid", "mail {}", "S" + "G." + ALNUM[:22] + "." + ALNUM[:43]),
    ("mailgun", "mail {}", "ke" + "y-" + HEX[:32]),
    ("npm", "//registry.npmjs.org/:_authToken={}", "np" + "m_" + ALNUM[:36]),
    ("pypi", "upload {}", "py" + "pi-AgEIcHlwaS5vcmc" + ALNUM[:80]),
    ("rubygems", "push {}", "ruby" + "gems_" + HEX[:48]),
    ("docker", "login {}", "dckr" + "_pat_" + ALNUM[:27]),
    ("huggingface", "download with {}", "h" + "f_" + ALNUM[:34]),
    ("replicate", "run {}", "r" + "8_" + ALNUM[:37]),
    ("groq", "run {}", "gs" + "k_" + ALNUM[:52]),
    ("xai", "run {}", "xa" + "i-" + ALNUM[:80]),
    ("perplexity", "run {}", "pp" + "lx-" + ALNUM[:48]),
    ("langsmith", "trace {}", "ls" + "v2_pt_" + HEX[:32] + "_" + HEX[:10]),
    ("digitalocean", "droplet {}", "do" + "p_v1_" + HEX[:64]),
    ("doppler", "run {}", "d" + "p.pt." + ALNUM[:43]),
    ("linear", "issue {}", "lin" + "_api_" + ALNUM[:40]),
    ("notion", "page {}", "sec" + "ret_" + ALNUM[:43]),
    ("notion", "page {}", "nt" + "n_" + ALNUM[:46]),
    ("shopify", "shop {}", "sh" + "pat_" + HEX[:32]),
    ("square", "pos {}", "sq" + "0atp-" + ALNUM[:22]),
    ("telegram", "bot 123456789:{}", "A" + "A" + ALNUM[:33]),
    ("discord", 'client.run("{}")', "M" + "T" + ALNUM[:22] + ".GabcdE." + ALNUM[:38]),
    ("discord_webhook", "https://discord.com/api/webhooks/123456789012345678/{}", ALNUM[:68]),
    ("azure_key", "AccountName=x;AccountKey={};EndpointSuffix=core", ALNUM[:86] + "=="),
    ("azure_key", "SharedAccessKey={}", ALNUM[:43] + "="),
    ("azure_sas", "https://x.blob.core.windows.net/c?sv=2022&sig={}", ALNUM[:43] + "%3D"),
    ("databricks", "host {}", "da" + "pi" + HEX[:32]),
    ("vault", "vault {}", "hv" + "s." + ALNUM[:90]),
    ("postman", "api {}", "PM" + "AK-" + HEX[:24] + "-" + HEX[:34]),
    ("grafana", "dash {}", "gl" + "sa_" + ALNUM[:32] + "_" + HEX[:8]),
    ("grafana", "dash {}", "gl" + "c_ey" + "J" + ALNUM[:60]),
    ("new_relic", "apm {}", "NR" + "AK-" + UPPER[:27]),
    ("sentry", "dsn {}", "snt" + "rys_" + ALNUM[:80]),
    ("cloudflare", "origin {}", "v1" + ".0-" + HEX[:24] + "-" + HEX[:146]),
    ("cloudflare", "CLOUDFLARE_API={}", ALNUM[:40]),
    ("heroku", "app {}", "HR" + "KU-AA" + ALNUM[:58]),
    ("heroku", 'HEROKU_API_KEY: "{}"', UUID),
    ("atlassian", "jira {}", "ATA" + "TT3" + ALNUM[:180] + "=ABCD1234"),
    ("dropbox", "box {}", "s" + "l." + ALNUM[:140]),
    ("fly", "deploy FlyV1 {}", "fm" + "2_" + ALNUM[:120]),
    ("tailscale", "up --authkey {}", "ts" + "key-auth-" + ALNUM[:12] + "-" + ALNUM[:32]),
    ("supabase", "db {}", "sb" + "p_" + HEX[:40]),
    ("planetscale", "db {}", "psc" + "ale_tkn_" + ALNUM[:43]),
    ("figma", "design {}", "fi" + "gd_" + ALNUM[:40]),
    ("api_token", "{} is set", "sg" + "p_" + HEX[:40]),
    ("alibaba", "id {}", "LT" + "AI" + ALNUM[:20]),
    ("dynatrace", "{}", "dt0" + "c01." + ALNUM[:24].upper() + "." + (ALNUM * 2)[:64].upper()),
    ("airtable", "base {}", "pa" + "t" + ALNUM[:14] + "." + (HEX * 3)[:64]),
    ("mapbox", "map {}", "sk" + ".eyJ" + ALNUM[:60] + "." + ALNUM[:22]),
    ("jwt", "cookie {};", "ey" + "J" + ALNUM[:20] + ".ey" + "J" + ALNUM[:60] + "." + ALNUM[:43]),
    ("private_key", "before\n{}\nafter", pem()),
    ("private_key", "before\n{}\nafter", pem("OPENSSH ")),
    ("private_key", "{}", pem("EC ", end=False)),
    ("private_key", "{}\n\nAnd then it was cut off.", pem("", end=False)),
    ("authorization", "Authorization: Bearer {}", "opaque." + ALNUM[:12]),
    ("authorization", '"Authorization": "Basic {}"', "dXNlcjpwYXNzd29yZA=="),
    ("authorization", "curl -H 'authorization: token {}'", HEX[:40]),
    ("bearer", "send Bearer {} along", ALNUM[:32]),
    ("url", "postgres://app:{}@db.internal:5432/app", "swordfish"),
    ("url", "redis://:{}@localhost:6379", "s3cr3t!x"),
    ("url", "https://ci:{}@github.com/o/r.git", ALNUM[:30]),
    ("password", "DB_PASSWORD={}", "Tr0ub4dor&3"),
    ("password", 'passwd: "{}"', "hunter2"),
    ("password", "password: {}", "hunter2"),
    ("password", "my password is {}, do not tell", "Summer2024!"),
    ("password", "mysql --password {} -h x", "9dkw0-Xmq"),
    ("password", '{{"password": "{}"}}', "correct#horse"),
    ("password", '\'{{\\"password\\": \\"{}\\"}}\'', "corr3cthorse"),
    ("password", 'password: str = "{}"', "corr3cthorse"),
    ("password", "<password>{}</password>", "corr3cthorse"),
    ("password", "DB_PASSWORD={}", "correcthorse" + "batterystaple"),
    ("password", "export PGPASSWORD={}\nrun", "sword" + "fish"),
    ("password", "DB_PASSWORD='{}'", "correct-horse-" + "battery"),
    ("password", "password: {}", "qhzkvty" + "rmpwoxn"),
    ("password", "db:\n  password: {}\n  host: x", "sword" + "fish"),
    ("password", "user: app password: {} host: x", "sword" + "fish"),
    ("password", "the login: app, password: {}, host: x", "sword" + "fish"),
    ("password", 'passphrase = "{}"', "sword" + "fish"),
    ("password", '{{"user": "app", "passwd": "{}"}}', "sword" + "fish"),
    ("password", "Server=db;User=app;Password={};Database=x", "sword" + "fish"),
    ("password", "https://x.org/login?password={}&next=x", "sword" + "fish"),
    ("password", "host=db password={} dbname=x", "sword" + "fish"),
    ("password", "curl -u admin:{} https://x.org", "hunter2"),
    ("password", "curl -sS -X POST --user 'admin:{}' https://x.org", "sword" + "fish"),
    ("password", "curl https://x.org -H 'Accept: a/b' \\\n  -su admin:{}", "hunter2"),
    ("token", "token = '{}'", ALNUM[:24]),
    ("token", 'api_key: "{}"', HEX[:32]),
    ("token", "X-Api-Key: {}", HEX[:32]),
    ("token", "apikey={}", ALNUM[:20]),
    ("token", "access_key = {}", ALNUM[:20]),
    ("token", "client_secret={}&grant=x", ALNUM[:32]),
    ("token", "MY_SECRET=>{}", ALNUM[:32]),
    ("token", "settings['secret_key'] = '{}'", ALNUM[:50]),
]

INNOCENT = [
    'password = os.environ["DB_PASSWORD_1"]',
    "token: str",
    "token: str | None = None",
    "password: <your password>",
    "password: <your-password-123>",
    "api_key = None",
    "secret=${SECRET}",
    "secret=${SECRET_V2_2024}",
    "secret: {{ vault.db.password_v2 }}",
    "password=getpass.getpass()",
    "password=password",
    'password="********"',
    'api_key="xxxxxxxxxxxxxxxxxxxx"',
    'api_key="YOUR_API_KEY_1234"',
    "token = tokenize.NAME",
    "token = self.tokens[index + 12]",
    "token=base64_decode_utf8.value_v2",
    "token: gpt-4o-mini-2024-07-18",
    "pwd: /home/user1/project2",
    "password: str",
    "password: string",
    "password: String,",
    "password: SecretStr",
    "password=None",
    "password: required",
    "Password: required, at least twelve letters",
    "password: encrypted",
    '{"password": "required", "user": "optional"}',
    "the password is wrong",
    "password: choose a good one",
    "connect(user, password=credential)",
    "connect(\n    password=given,\n)",
    "password = generate",
    "password: form.value",
    "password: user_input,",
    "PASSWORD=$SECRET_VALUE",
    "PASSWORD=changeme",
    "PASSWORD=your-password-here",
    'password="insertyourpasswordhere"',
    "PWD=/srv/app",
    "passwd: compat",
    "if password == expected: pass",
    "curl -u user:password https://x.org",
    'curl -u "$USER:$PASS" https://x.org',
    "curl https://x.org | docker run -u app:group x",
    "docker run -u 1000:1000 x",
    "The password must be at least 12 characters and is never stored.",
    "The token budget is 8000 tokens: 60% of it goes to code.",
    "The secret: ship 3 small changes a day.",
    "max_tokens=4096, total_tokens: 150000",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer authentication is required",
    "postgres://user:password@localhost/db",
    "postgres://user:${PASSWORD}@localhost/db",
    "https://example.com:8080/a@b",
    "ssh://git@github.com:22/o/r.git",
    "commit " + HEX[:40] + " fixed it",
    "sha256:" + HEX[:64],
    "id " + UUID,
    '{"sha": "' + HEX[:40] + '", "tree": "' + HEX[:64] + '"}',
    "![x](data:image/png;base64," + (ALNUM + "/+") * 40 + "==)",
    "sk-learn-contrib-style-naming-of-a-package",
    "a-task-force-of-people-with-long-names",
    "git@github.com:owner/repository-name.git",
    "-----BEGIN CERTIFICATE-----\n" + PEM_BODY + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + PEM_BODY + "\n-----END PUBLIC KEY-----",
    "no-op",
    "",
]


@pytest.mark.parametrize(("kind", "template", "secret"), PLANTED, ids=lambda value: None)
def test_a_planted_secret_is_replaced_and_nothing_else_is(kind: str, template: str, secret: str) -> None:
    result = redact(template.format(secret))
    assert secret not in result.text
    assert result.kinds == (kind,)
    before, after = template.format("\0").split("\0")
    assert re.fullmatch(rf"{re.escape(before)}\[REDACTED:{kind}:[0-9a-f]{{8}}\]{re.escape(after)}", result.text)
    assert redact(result.text) == RedactionResult(result.text)


def test_every_rule_has_a_planted_secret() -> None:
    assert {kind for kind, _, _ in PLANTED} == {rule.kind for rule in load_rules().rules}
    assert len({rule.kind for rule in load_rules().rules}) >= 40


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    result = redact(text)
    assert result == RedactionResult(text)
    assert result.text is text


@pytest.mark.slow
def test_the_standard_library_has_almost_no_findings() -> None:
    # At most 4 in all of it, and each is a literal credential: two test passwords, a test URL's, and a doc example's.
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)[::6]
    assert len(files) > 100
    found = [redact(path.read_text(encoding="utf-8", errors="replace")).kinds for path in files]
    assert sum(map(len, found)) <= 4


def test_two_mentions_of_one_secret_read_the_same_and_two_secrets_do_not() -> None:
    one, other = "gh" + "p_" + ALNUM[:36], "gh" + "p_" + ALNUM[1:37]
    first, second, third = redact(f"{one} {one} {other}").text.split()
    assert first == second != third


def test_overlapping_findings_are_one_named_by_the_most_specific_rule() -> None:
    result = redact("password=" + "gh" + "p_" + ALNUM[:36] + "/more12")
    assert result.kinds == ("github",)
    assert result.text.startswith("password=[REDACTED:github:")
    assert result.text.endswith("]")


def test_letters_whose_lower_case_is_longer_do_not_shift_the_cut() -> None:
    assert [char for char in map(chr, range(sys.maxunicode + 1)) if len(char.lower()) != 1] == ["İ"]
    assert redact("İİİİ password=hunter2 İ").text == f"İİİİ password={redact('password=hunter2').text[9:]} İ"


def test_secrets_inside_other_scripts_are_found() -> None:
    assert redact("密钥" + "gh" + "p_" + ALNUM[:36] + "。请保密").text.endswith("]。请保密")


# --- private spans -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <private>b</private> c", "a [PRIVATE] c"),
        ("a <PRIVATE>b\nb</Private> c <private>d</private>", "a [PRIVATE] c [PRIVATE]"),
        ("a <private>never closed", "a [PRIVATE]"),
        ("a <private>b <private>c</private> d</private> e", "a [PRIVATE] e"),
        ("a <private>b <private>c</private> d", "a [PRIVATE]"),
        ("<private></private>", "[PRIVATE]"),
        ("stray </private> stays", "stray </private> stays"),
        ("a private matter, 1 < 2", "a private matter, 1 < 2"),
    ],
)
def test_private_spans_are_removed(text: str, expected: str) -> None:
    result = redact(text)
    assert result.text == expected
    assert result.kinds == ("private",) * expected.count("[PRIVATE]")


# --- the allow-list and data ---------------------------------------------------------------------------------------


def test_an_allowed_string_or_its_hash_is_left_alone(tmp_path: Path) -> None:
    text = "password=hunter2 token=" + ALNUM[:24]
    hash8 = redact("password=hunter2").text[-9:-1]
    listed = tmp_path / "allow.txt"
    listed.write_text(f"# known test values\n\n{hash8}\n  {ALNUM[:24]}\n", encoding="utf-8")
    assert load_allow_list(listed) == {hash8, ALNUM[:24]}
    assert redact(text, load_allow_list(listed)) == RedactionResult(text)
    assert redact(text, {"hunter2"}).kinds == ("token",)


def test_the_hash_of_merged_findings_can_be_allowed_too() -> None:
    text = "password=" + "gh" + "p_" + ALNUM[:36] + "/more12"
    assert redact(text, {redact(text).text[-9:-1]}).text == text


def test_data_is_redacted_in_values_keys_and_under_telling_keys() -> None:
    token = "gh" + "p_" + ALNUM[:36]
    value = {
        "note": f"use {token}",
        token: 1,
        "password": "hunter2 with spaces",
        "db": [{"user_password": "hunter2", "api_key": "none yet"}, ("x", token)],
        "apiKey": ALNUM[:24],
        "token": "str",
        "count": 3,
        "none": None,
    }
    clean = redact_value(value)
    assert token not in repr(clean)
    assert "hunter2" not in repr(clean)
    assert ALNUM[:24] not in repr(clean)
    assert (clean["token"], clean["count"], clean["none"]) == ("str", 3, None)
    assert clean["db"][0]["api_key"] == "none yet"
    assert redact_value(clean) == clean
    assert redact_value({"db_password": "sword" + "fish"})["db_password"].startswith("[REDACTED:password:")
    assert redact_value({"password": "required"}) == {"password": "required"}
    assert redact_value({"password": "hunter2"}, {"hunter2"}) == {"password": "hunter2"}


# --- properties ----------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [secret for _, _, secret in PLANTED]
    + ["password=", "token: ", "secret", "://u:", "@", '"', "'", " ", "\n", ".", "-", "_", "]", "[REDACTED:", "\\"]
    + ["<private>", "</private>", "[PRIVATE]", "[REDACTED:password:0a1b2c3d]", "Bearer ", "hunter2", "=", "x1", "密"]
    + ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "Authorization: Basic ", "key", "--password "]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once.text) == RedactionResult(once.text)


@given(st.text(max_size=30), st.sampled_from(PLANTED), st.text(max_size=30))
def test_a_secret_on_a_line_of_its_own_is_never_kept(before: str, planted: tuple[str, str, str], after: str) -> None:
    _, template, secret = planted
    assert secret not in redact(f"{before}\n{template.format(secret)}\n{after}").text


# --- time ----------------------------------------------------------------------------------------------------------

MEGABYTE = 1_000_000
DASHES = "-" * 5
ADVERSARIAL = [
    "a",
    "-",
    "://",
    "://a:",
    "eyJ",
    "eyJaaaaaaaa.",
    "sk-",
    "sk-ant-",
    "ghp_" + "a" * 35,
    "token=",
    "token1=",
    "token:a1",
    "token=,",
    "password=",
    "password=a",
    "password=a1b2c3 ",
    "secret_key=" + "a" * 600 + " ",
    "password=aaaaaaa,",
    "password:aaaaaaa.",
    "PASSWORD=aaaaaaaPASSWORD:",
    "curl ",
    "curl a -u ",
    "curl -u a:",
    "authorization: bearer ",
    "bearer aaaaaaaaaaaaaaaaaaaaaaaa ",
    "<private>",
    "<private></private>",
    f"{DASHES}BEGIN PRIVATE KEY{DASHES}",
    f"{DASHES}BEGIN PRIVATE KEY{DASHES}\n-a-a-a",
    f"{DASHES}BEGIN ",
    "MT" + "a" * 22 + ".aaaaaa.",
    "dp.pt.",
    "twilio ",
    "[REDACTED:password:0a1b2c3d]",
    '"private_key":"' + DASHES + "BEGIN",
    "xoxb-1",
    "key-" + "0" * 31,
    "密",
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ADVERSARIAL)
def test_a_megabyte_made_to_be_slow_takes_linear_time(piece: str) -> None:
    text = piece * (MEGABYTE // len(piece))
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 5.0  # seconds where it is linear, hours where it is not; the machine may be busy
