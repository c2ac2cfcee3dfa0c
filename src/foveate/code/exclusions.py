"""Decides which files are not worth indexing, by path, size and content.

The result is a reason such as `lock file`, or "" for a file that is indexed. Names are checked first, because that spares
reading the file. The rules for names are narrow, because an excluded file is never found: `vendor.py`, a package called
`lock` and a tracked `build/` are indexed. Code that only looks vendored has the role `vendored` instead (see `roles`) and
ranks lower.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

MAX_BYTES = 1_000_000
"""No one writes a longer source file by hand, and no prompt could show it."""

MAX_DATA_BYTES = 200_000
"""Longer data files are read by programs, not by people."""

HEAD_BYTES = 8192
"""The first bytes of a file tell text from binary."""

MINIFIED_CHARS = 500
"""Average length of a line. Source code written by people has 30 to 60 characters, generated tables up to about 200."""

HEADER_LINES = 20
"""Lines that are searched for a generated marker. A licence may come before it."""

REASON_SECRET = "may hold secrets"
REASON_BINARY = "binary"
REASON_VENDORED = "vendored"
REASON_GENERATED = "generated"
REASON_MINIFIED = "minified"
REASON_TOO_LARGE = f"larger than {MAX_BYTES:,} bytes"

REASON_VERSION_CONTROL = "version control"
REASON_FOVEATE_FILE = "foveate's own"

MANDATORY_REASONS = frozenset((REASON_SECRET, REASON_BINARY, REASON_TOO_LARGE, REASON_VERSION_CONTROL, REASON_FOVEATE_FILE))
"""Reasons that `include` cannot override."""


def exclusion_by_name(path: str, size: int) -> str:
    """Return the reason why a file is excluded by its name or size, or ""."""
    name = path[path.rfind("/") + 1 :].lower()
    suffix = name[name.rfind(".") :] if "." in name else ""
    reason = _BY_NAME.get(name) or _BY_SUFFIX.get(suffix)
    if not reason and (suffix in _PATTERN_SUFFIXES or name[:1] == "."):
        reason = _by_pattern(path, name, suffix)
    reason = reason or exclusion_by_dir(path)[1]
    if reason:
        return reason
    if size > MAX_BYTES:
        return REASON_TOO_LARGE
    return "large data file" if size > MAX_DATA_BYTES and suffix in _DATA else ""


def exclusion_by_dir(path: str) -> tuple[str, str]:
    """Return the outermost excluded folder of a path, with a slash at its end, and the reason; else two empty texts."""
    folder, reason, unsure = _dir_exclusion(path[: path.rfind("/") + 1])
    return ("", "") if unsure and path.endswith(_VENDOR_AS_NAME_SUFFIXES) else (folder, reason)


def exclusion_by_text(path: str, text: str) -> str:
    """Return the reason why a file is excluded by its text, or ""."""
    if len(text) > 4 * MINIFIED_CHARS and not path.lower().endswith(_LONG_LINE_SUFFIXES):
        lines = text.count("\n") + 1
        if len(text) > MINIFIED_CHARS * lines:
            return REASON_MINIFIED
    return REASON_GENERATED if _has_generated_marker(text) else ""


def is_binary(raw: bytes) -> bool:
    """Return whether the first bytes of a file are not text in any supported encoding."""
    head = raw[:HEAD_BYTES]
    if head.startswith(UTF16_UTF32_BOMS):
        return False
    return b"\0" in head or len(head.translate(None, _CONTROL)) < 0.9 * len(head)


def error_reason(error: OSError) -> str:
    """Return the reason why a file is excluded after an error of the system: `permission denied`."""
    return (error.strerror or type(error).__name__).lower()


# --- by name -----------------------------------------------------------------------------------------------------------


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    return {word: reason for reason, words in rows for word in words.split()}


_EXCLUDED_DIRS = _table(
    (
        REASON_VENDORED,
        "node_modules bower_components jspm_packages third_party third-party thirdparty 3rdparty site-packages",
    ),
    (REASON_VENDORED, "dist-packages Pods Carthage elm-stuff .yarn .bundle .eggs .terraform"),
    ("virtual environment", ".venv .virtualenv .tox .nox __pypackages__ .pixi .conda"),
    ("cache", "__pycache__ .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache .gradle .dart_tool .parcel-cache"),
    ("cache", ".next .nuxt .svelte-kit .angular .stack-work .zig-cache zig-cache .ipynb_checkpoints .sass-cache .turbo"),
    ("build output", "dist-newstyle DerivedData htmlcov .nyc_output"),
    (REASON_VERSION_CONTROL, ".git .hg .svn .bzr CVS .jj"),
    (REASON_FOVEATE_FILE, ".foveate"),
)

# A folder `vendor` deeper in the tree can also be about merchants. In these languages its files are indexed.
_VENDOR_AS_NAME_SUFFIXES = tuple(".py .pyi .java .kt .scala .cs .swift .ts .tsx .vue .html .sql .ex".split())  # noqa: SIM905

_LOCK = "lock file"
_BY_NAME = _table(
    (_LOCK, "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum go.work.sum bun.lockb packages.lock.json"),
    (_LOCK, "conda-lock.yml package.resolved cartfile.resolved gradle.lockfile buildscript-gradle.lockfile pylock.toml"),
    (_LOCK, ".terraform.lock.hcl cabal.project.freeze .pnp.cjs .pnp.loader.mjs"),
    (REASON_SECRET, ".env .netrc _netrc .npmrc .pypirc .htpasswd .pgpass .my.cnf .git-credentials .dockercfg .s3cfg .boto"),
    (REASON_SECRET, "kubeconfig credentials.yml.enc secrets.yml secrets.yaml secrets.json secrets.toml secrets.ini"),
    ("file of the system", ".ds_store thumbs.db desktop.ini"),
)

_BY_SUFFIX = _table(
    (_LOCK, ".lock"),
    (REASON_SECRET, ".pem .key .p12 .pfx .p8 .jks .keystore .kdbx .kdb .ppk .ovpn .tfstate .tfvars .kubeconfig .gpg .pgp"),
    ("certificate", ".crt .cer .csr .crl"),
    (REASON_MINIFIED, ".map"),
    ("translation", ".po .xliff .xlf"),
    (
        REASON_BINARY,
        ".png .jpg .jpeg .gif .bmp .ico .icns .webp .avif .tif .tiff .psd .ai .eps .heic .xcf .sketch .dds .tga",
    ),
    (REASON_BINARY, ".ttf .otf .woff .woff2 .eot .pfb .pcf"),
    (REASON_BINARY, ".zip .gz .tgz .bz2 .xz .7z .rar .tar .zst .lz4 .lzma .br .whl .egg .jar .war .ear .aar .apk .ipa .gem"),
    (REASON_BINARY, ".nupkg .deb .rpm .msi .dmg .iso .img .cab .crx .xpi .vsix"),
    (REASON_BINARY, ".mp3 .mp4 .m4a .m4v .wav .flac .ogg .oga .ogv .opus .avi .mov .mkv .webm .wmv .aac .mid .midi"),
    (REASON_BINARY, ".pdf .doc .docx .xls .xlsx .ppt .pptx .odt .ods .odp .epub .mobi .djvu .rtf"),
    (
        REASON_BINARY,
        ".pyc .pyo .pyd .so .dll .dylib .exe .o .a .lib .class .dex .wasm .beam .elc .ko .rlib .rmeta .pdb .node",
    ),
    (REASON_BINARY, ".db .sqlite .sqlite3 .mdb .accdb .dbf .ibd .ldb .sst .realm"),
    (REASON_BINARY, ".pkl .pickle .joblib .npy .npz .h5 .hdf5 .parquet .feather .arrow .avro .orc .rds .rdata .mat .sav"),
    (REASON_BINARY, ".pt .pth .ckpt .safetensors .onnx .pb .tflite .gguf .ggml .mlmodel .keras .caffemodel .bin .tfrecord"),
    (REASON_BINARY, ".mo .gmo .swf .fla .blend .fbx .glb .stl .unity3d .uasset .umap .pcap .shp .shx .mbtiles"),
)

_DATA = frozenset(
    """.csv .tsv .json .jsonl .ndjson .geojson .topojson .svg .xml .log .dump .fasta .vcf .gpx .kml .plist .ipynb .har .snap
    .pot .wkt .obj""".split()  # noqa: SIM905
)

_PATTERN_SUFFIXES = frozenset(("", ".js", ".css", ".mjs", ".cjs", ".json", ".env", ".pub", ".bak", ".old", ".backup"))
"""Suffixes of names that need the slower check by pattern."""

_MINIFIED_ENDS = (".min.js", ".min.css", ".min.mjs", ".min.cjs", "-min.js", "-min.css", ".bundle.js", ".bundle.css",
                  ".chunk.js", ".chunk.css")  # fmt: skip
_PRIVATE_KEYS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
_CREDENTIALS = ("credentials", "client_secret", "service-account", "service_account", "serviceaccount")
_EXAMPLE_FILE_WORDS = ("example", "sample", "template", "dist", "tpl", "tmpl", "defaults", "schema")
"""Words in the names of example files, which hold no secrets."""

_HIDDEN_FILES = (".aws/credentials", ".docker/config.json", ".kube/config", ".ssh/config")


def _by_pattern(path: str, name: str, suffix: str) -> str:
    """Return the reason for names that neither the tables of names nor those of suffixes can decide, or ""."""
    if suffix in (".js", ".css", ".mjs", ".cjs"):
        return REASON_MINIFIED if name.endswith(_MINIFIED_ENDS) else ""
    if name.startswith(".env.") or suffix == ".env":
        return "" if any(word in _EXAMPLE_FILE_WORDS for word in name.split(".")) else REASON_SECRET
    if name.startswith(_PRIVATE_KEYS) and suffix in ("", ".pub", ".bak", ".old"):
        return REASON_SECRET
    if suffix == ".json" and name.startswith(_CREDENTIALS) and not any(word in name for word in _EXAMPLE_FILE_WORDS):
        return REASON_SECRET
    if ".tfstate." in name or path.lower().endswith(_HIDDEN_FILES):
        return REASON_SECRET
    return ""


@lru_cache(maxsize=4096)
def _dir_exclusion(folder: str) -> tuple[str, str, bool]:
    """Return the outermost excluded part of a folder, the reason, and whether some of its files are indexed all the same."""
    start = 0
    for part in folder.split("/")[:-1]:
        end = start + len(part) + 1
        if reason := _EXCLUDED_DIRS.get(part):
            return folder[:end], reason, False
        if part == "vendor":
            return folder[:end], REASON_VENDORED, start > 0
        start = end
    return "", "", False


# --- by content --------------------------------------------------------------------------------------------------------

UTF16_UTF32_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\x1b") + b"\x7f"
_LONG_LINE_SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt", ".tex", ".adoc", ".org", ".ipynb")
"""Formats with long lines that are not minified: paragraphs on one line, pictures inside notebooks."""

_GENERATED_MARKER = re.compile(
    r"(?<![\w`'\"])@generated\b"
    r"|<auto-?generated"
    r"|\bcode generated\b.*\bdo not edit\b"
    r"|\bthis (?:file|code|module|script|document|header) (?:was|is|has been) "
    r"(?:auto(?:matically)?[- ]?|machine[- ])?generated\b"
    r"|^(?:this is an )?auto(?:matically)?[- ]?generated (?:file|by|from|with|using)\b"
    r"|\bgenerated\b.*\b(?:do not|don't|not to be) (?:edit|modify|change|be edited|edited|modified)"
    r"|\b(?:do not|don't) (?:edit|modify|change)\b.*\b(?:auto-?)?generated\b",
    re.IGNORECASE,
)
_COMMENT = ("#", "//", "/*", "*", "<!--", "--", ";", "%", '"""', "'''", "{-", "(*", "{#", "'", "!", "rem ", "REM ", "..")
_COMMENT_OPEN = re.compile(r"/\*|<!--|\"\"\"|'''|\{-|\(\*|\{#")
_COMMENT_CLOSE = {"/*": "*/", "<!--": "-->", '"""': '"""', "'''": "'''", "{-": "-}", "(*": "*)", "{#": "#}"}


def _has_generated_marker(text: str) -> bool:
    """Return whether a comment at the top says that the file is generated."""
    head = text[: HEADER_LINES * 200]
    if "generated" not in head.lower():  # true for nearly every file
        return False
    comments = list(_comments(head.split("\n")[:HEADER_LINES]))
    # A sentence may continue on the next line of a comment, but not further.
    return any(_GENERATED_MARKER.search(line) for line in comments) or any(
        _GENERATED_MARKER.search(f"{first} {second}") for first, second in pairwise(comments)
    )


def _comments(lines: list[str]) -> list[str]:
    """Return the lines of comments and docstrings without their marks."""
    comments = []
    closing = ""
    for line in lines:
        stripped = line.strip()
        if closing or stripped.startswith(_COMMENT):
            comments.append(stripped.strip("#/*-;%'\"!<>{}() \t"))
        if closing:
            closing = "" if closing in stripped else closing
        elif opening := _COMMENT_OPEN.match(stripped):
            end = _COMMENT_CLOSE[opening[0]]
            closing = "" if end in stripped[opening.end() :] else end
    return comments
