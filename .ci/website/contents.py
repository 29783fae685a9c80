"""Which pages the site has, in the order of its navigation, and which pictures they show."""

from __future__ import annotations

from dataclasses import dataclass

from website.bodies import Screen

HELP = "doc/parley.txt"


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its file, its name in the navigation, and the Markdown page or the section of the
    help that it is.
    """

    file: str
    name: str
    source: str | int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The first blocks below a help tag, or a whole section of a Markdown page by its anchor."""

    source: str
    target: str
    blocks: int = 99


@dataclass(frozen=True, slots=True)
class Task:
    """A task for newcomers, told by excerpts, with a picture."""

    title: str
    screen: Screen
    excerpts: tuple[Excerpt, ...]


TASKS_PAGE, INDEX_PAGE, START_PAGE = "tasks.html", "names.html", "index.html"
GROUPS: dict[str, tuple[Page, ...]] = {
    "Start": (
        Page(START_PAGE, "Overview", "README.md"),
        Page(TASKS_PAGE, "The first five tasks", ""),
        Page("recipes.html", "Recipes", 13),
        Page("from.html", "From another plugin", 14),
    ),
    "In Neovim": (
        Page("help.html", "The help", 0),
        Page("first-chat.html", "First chat", 1),
        Page("install.html", "Installing", 2),
        Page("commands.html", "Commands", 3),
        Page("keys.html", "Keys", 4),
        Page("approving.html", "Approving tool calls", 5),
        Page("turn.html", "The turn", 6),
        Page("file.html", "The file", 7),
        Page("status.html", "Status", 8),
        Page("settings.html", "Settings", 9),
        Page("lua.html", "Lua functions", 10),
        Page("host.html", "The Python host", 11),
        Page("troubles.html", "Troubles", 12),
    ),
    "Elsewhere": (
        Page("shell.html", "Shell", "doc/shell.md"),
        Page("json.html", "JSON", "doc/json.md"),
        Page("library.html", "Library", "doc/library.md"),
        Page("format.html", "File format", "doc/transcript.md"),
    ),
    "Project": (
        Page("security.html", "Security", "SECURITY.md"),
        Page("architecture.html", "Architecture", "doc/architecture.md"),
        Page("speed.html", "Speed", "doc/speed.md"),
        Page("contributing.html", "Contributing", "CONTRIBUTING.md"),
        Page("changes.html", "Changes", "CHANGELOG.md"),
        Page(INDEX_PAGE, "Index", ""),
    ),
}
ASKING = Screen(
    "asking", "You ask, two tool calls wait, a key approves both, and the answer follows"
)
EDITING = Screen(
    "editing",
    "The model proposes an edit, you approve its diff, and :ParleyRevert takes it back",
)
TASKS = (
    Task(
        "Ask a question",
        ASKING,
        (Excerpt("README.md", "first-chat"), Excerpt(HELP, "parley-first-chat", 5)),
    ),
    Task(
        "Approve a tool call",
        Screen("session", "Two waiting calls below an answer, with the keys that decide on them"),
        (Excerpt(HELP, "parley-approve", 3), Excerpt(HELP, "parley-ya", 2)),
    ),
    Task(
        "Review an edit, and take it back",
        EDITING,
        (Excerpt(HELP, "parley-review-edit", 3), Excerpt(HELP, "parley-changes", 1)),
    ),
    Task(
        "Ask about your code",
        Screen("completion", "A question, and what may follow @@: files, a selection, diagnostics"),
        (Excerpt(HELP, "parley-context", 3),),
    ),
    Task(
        "Let a model work in your project",
        Screen("command-running", "A command that the model runs, with its output so far"),
        (Excerpt(HELP, "parley-workspace", 2), Excerpt(HELP, "parley-sandbox", 1)),
    ),
)
SCREENS = {
    "parley-approve": Screen("waiting", "Two waiting calls, and the keys that decide on them"),
    "parley-trust": Screen("trust", "What a project's server file would start, set and send"),
    "parley-instructions": Screen("instructions", "A project's instructions, before you agree"),
    "parley-review-edit": Screen("edit-diff", "A proposed edit as a diff in a tab page"),
    "parley-sandbox": Screen("command", "A command that waits, and whether it is sandboxed"),
    "parley-queue": Screen("queued", "Two questions that are queued below a running answer"),
    "parley-prompts": Screen("prompts", "The list of prompts"),
    ":ParleyTools": Screen("tools", "The page with servers and their tools"),
    ":ParleyLog": Screen("log", "The page with choices, calls and requests"),
    ":ParleyRequest": Screen("request", "The page with the next request"),
    ":ParleyCompare": Screen("compared-two", "Two answers to one question, side by side"),
    "parley-troubles": Screen("health", "The report of :checkhealth parley"),
}
"""The pictures below the headings and terms with these tags."""
