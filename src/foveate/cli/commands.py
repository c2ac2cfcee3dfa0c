"""The commands of `foveate`: their order in the help, the module that holds each, and its summary.

The help is printed from this table, so that `foveate --help` imports no command. A test compares each summary with the
command's own help.
"""

from __future__ import annotations

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Every day": {
        "init": ("init", "Create a project's store, .foveate/, and print its path."),
        "context": ("contexts", "Compute a context and print what the model should see."),
        "remember": ("remember", "Store conversations, transcripts, logs and memory files."),
        "add": ("memory", "Store a record and print its id."),
        "search": ("memory", "Find records, best first; without QUERY, list the newest."),
        "show": ("show", "Show a record or a context; without an id, the latest context."),
        "edit": ("memory", "Change a record: its text, its fields, or whether it is in use."),
        "forget": ("memory", "Delete records permanently, down to the bytes of the file."),
        "why": ("contexts", "Explain why an item is in a context or not."),
        "inbox": ("inbox", "List what waits for a person's decision, newest first."),
        "inbox accept": ("inbox", "Accept records: their trust becomes yours."),
        "inbox reject": ("inbox", "Reject records: they are retired and stay in the history."),
        "inbox answer": ("inbox", "Answer an open question and print the decision's id."),
    },
    "More": {
        "undo": ("memory", "Undo the last change to a record and its effects on other records."),
        "link": ("memory", "Link two records by id, or two entities by name."),
        "check": ("memory", "Check a planned action against censors and instructions."),
        "feedback": ("contexts", "Report how useful a context or single records were."),
        "log": ("contexts", "List past contexts, newest first."),
    },
    "Code": {
        "code map": ("code", "Print the map of the repository: the files and definitions that matter most."),
        "code docs": ("code", "Print what the documents and manifests of the repository say."),
    },
    "Tasks": {
        "task add": ("tasks", "Add a task and print its id."),
        "task list": ("tasks", "List tasks in the order in which they were added."),
        "task show": ("tasks", "Show a task: its fields, the tasks around it and its result."),
        "task edit": ("tasks", "Change the fields or the status of a task."),
        "task claim": ("tasks", "Claim a task for --agent and print the context that the agent starts with."),
        "task release": ("tasks", "Release the claims on a task, of --agent, or both, and print their number."),
        "task done": ("tasks", "Complete a task, which ends every claim on it."),
        "task fail": ("tasks", "Mark a task as failed, which ends every claim on it."),
        "task handoff": ("tasks", "Learn from the handoff in FILE and end its task."),
    },
    "Agents": {
        "install": ("install", "Add foveate to a coding agent: hooks, MCP server and skill."),
        "uninstall": ("install", "Remove foveate from a coding agent's settings."),
    },
    "Service": {
        "ui": ("serve", "Open the inspector in a browser."),
        "serve": ("serve", "Serve the project over HTTP until Ctrl-C."),
        "mcp": ("mcp", "Serve the project to a model's host over MCP."),
        "token": ("token", "List the tokens of the service, without their secrets."),
        "token create": ("token", "Create a token and print it, once."),
        "token revoke": ("token", "End a token now, also in a running service."),
    },
    "Store": {
        "stats": ("doctor", "Count records and claims, and measure how well contexts serve."),
        "doctor": ("doctor", "Check the store, indexes, settings, profiles, database roles and hooks."),
        "store backup": ("store", "Copy the store to a new file or into a database, while others write."),
        "store restore": ("store", "Replace the store by a backup, from a file or a database."),
        "store export": ("store", "Write records, their history and links as lines of JSON."),
        "store import": ("store", "Read an export of foveate; `-` reads stdin."),
        "store maintain": ("store", "Run the maintenance that is due."),
    },
    "Tuning": {
        "profile": ("profile", "List profiles, or print one as TOML with the layer that set each value."),
        "eval run": ("eval", "Run every case of a suite and report what reached the prompt."),
        "eval report": ("eval", "Print the metrics of runs."),
        "eval record": ("eval", "Turn a context of real use into a case of your own suite."),
    },
}
"""Section -> command -> (module, summary)."""

MODULES = {path.split()[0]: module for section in COMMANDS.values() for path, (module, _) in section.items()}
"""The module of each verb and group."""

SUMMARIES = {path: summary for section in COMMANDS.values() for path, (_, summary) in section.items()}

EXAMPLES = {
    "init": "foveate init",
    "context": 'foveate context "Why does login fail?" --budget 4000',
    "remember": "foveate remember ~/.claude/projects/shop",
    "add": 'foveate add decision "Use Redis for sessions"',
    "search": 'foveate search "redis sessions"',
    "show": "foveate show ID",
    "edit": "foveate edit ID --outcome success",
    "forget": "foveate forget ID",
    "why": "foveate why ID",
    "inbox": "foveate inbox",
}
"""One example for each command of every day; plain `foveate` prints them."""

OTHER_WORDS = {
    "ask": ["context"],
    "delete": ["forget"],
    "explain": ["why"],
    "find": ["search"],
    "gc": ["store maintain"],
    "get": ["show", "context"],
    "history": ["log", "show"],
    "import": ["remember", "store import"],
    "learn": ["remember"],
    "index": ["init"],
    "list": ["search", "task list"],
    "migrate": ["store maintain"],
    "new": ["init", "add"],
    "query": ["context", "search"],
    "recall": ["context", "search"],
    "remove": ["forget"],
    "rm": ["forget"],
    "save": ["add", "remember"],
    "update": ["edit"],
}
"""Names that other programs use for our commands. A similar spelling would lead to a command that does something else."""

MIN_SIMILARITY = 0.75
"""How similar an unknown word must be to a command. At 0.6, `recall` is similar to `eval`."""

MAX_SUGGESTIONS = 3


def suggestions(word: str, group: str = "") -> list[str]:
    """Return the commands that an unknown word may mean, in a group such as `task` or among all."""
    from difflib import get_close_matches  # only errors need it

    if not group and word in OTHER_WORDS:
        return OTHER_WORDS[word]
    paths_of: dict[str, list[str]] = {}
    for path in SUMMARIES:
        first, last = path.split()[0], path.split()[-1]
        if group in ("", first):
            for name in {last} if group else {first, last}:
                paths_of.setdefault(name, []).append(path)
    name = next(iter(get_close_matches(word, paths_of, 1, MIN_SIMILARITY)), "")
    found = paths_of.get(name, [])
    return found if len(found) <= MAX_SUGGESTIONS else [name]
