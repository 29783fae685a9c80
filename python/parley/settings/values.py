"""Every setting with its default: the only place for defaults.

Does not know files, the editor, or how a user's table is converted to these values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any, Literal, NewType, Self

from parley.chat.options import CallLimits, ThinkingSettings, ToolMode
from parley.errors import SettingsError
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.events import Price
from parley.models.formats import ACP, apis, kinds
from parley.models.model_list import is_model_name
from parley.models.quirks import COMPATIBLE, Quirk
from parley.policy.choice import Scope
from parley.policy.rules import Pattern
from parley.programs import program_name
from parley.tables import rule
from parley.tools.server_settings import ServerSettings, placeholders

Key = NewType("Key", str)
"""A key in the syntax of `vim.keymap.set`; "" for none."""

SYSTEM_PROMPT = """\
You are a helpful assistant. Answer in Markdown, as briefly as the question allows.
End each answer with a line that starts with 📝: and sums up question and answer in one sentence."""


INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
"""The files with a project's instructions; in each folder, Parley uses the first file that
exists."""

TEXT_TOOLS_MAX_TOKENS = 4096
"""The most `max_tokens` with tools as text, unless `safety.max_tokens_per_request` is set."""


OWN_MODEL = "default"
"""The model of an agent of another program that chooses its model itself."""

HIDDEN = "…"
"""Replaces a possible secret."""

_VARIABLE = late_pattern(r"[A-Z_][A-Z0-9_]*|\$\{(?:env:)?\w+\}")


@frozen
class ProviderSettings:
    """A provider of models; `kind` is the wire format. The key comes from a variable or a command.

    `headers` are sent with each request; their values may contain `${VAR}`. `parameters` are
    added to each request's body, but never replace a field that Parley sets. `quirks` are the
    differences between this server and the server of the company that designed the format;
    `official` marks that company's own server. `model_list` says how the server lists its models:
    in the format's usual way, in Gemini's or Ollama's own, or not at all. `command` starts an agent
    of another program, with the variables in `env`. The agent works in `cwd`; "project" is the
    chat's project. `servers` are the names of the user's MCP servers that the agent may start
    itself. `install` is the shell command that installs the program of a built-in agent, and
    `is_installed` says whether it was found. `signs_in` marks a provider where any program may
    sign its user in, and `signed_in` says whether the user's key comes from it.
    """

    name: str = ""
    kind: Annotated[str, kinds] = "openai"
    base_url: str | None = None
    base_url_env: str | None = None
    api_key_env: str | None = field(default=None, repr=False, metadata=rule(is_secret=True))
    api_key_command: tuple[str, ...] | None = field(
        default=None, repr=False, metadata=rule(is_secret=True)
    )
    api: Annotated[str, apis] = "auto"
    model_list: Literal["auto", "gemini", "ollama", "off"] = "auto"
    quirks: tuple[Quirk, ...] = COMPATIBLE
    official: bool = False
    builtin: bool = False
    headers: Mapping[str, str] = field(
        default_factory=dict, hash=False, repr=False, metadata=rule(is_secret=True)
    )
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(
        default_factory=dict, hash=False, repr=False, metadata=rule(is_secret=True)
    )
    cwd: str = "project"
    servers: tuple[str, ...] = ()
    install: str = field(default="", metadata=rule(is_internal=True))
    is_installed: bool = field(default=False, metadata=rule(is_internal=True))
    signs_in: bool = field(default=False, metadata=rule(is_internal=True))
    signed_in: bool = field(default=False, metadata=rule(is_internal=True))

    @property
    def is_agent(self) -> bool:
        """Whether this is an agent of another program."""
        return self.kind == ACP

    @property
    def is_missing(self) -> bool:
        """Whether this is a built-in agent of another program that is not installed."""
        return bool(self.install) and not self.is_installed

    @property
    def sign_in_command(self) -> str:
        """The command that signs the user in; "" for a provider without sign-in."""
        return f":ParleyLogin {self.name}" if self.signs_in else ""

    @property
    def key_variable(self) -> str:
        """The name of the key's variable, for display."""
        return variable_name(self.api_key_env or "")

    @property
    def has_key(self) -> bool:
        """Whether a variable or a command is set for the key."""
        return bool(self.api_key_env or self.api_key_command)

    @property
    def header_variables(self) -> tuple[str, ...]:
        """The variables that the headers need."""
        bodies = (body for text in self.headers.values() for body in placeholders(text))
        needed = (body.removeprefix("env:") for body in bodies if ":-" not in body)
        return tuple(dict.fromkeys(needed))

    @property
    def has_key_header(self) -> bool:
        """Whether a header replaces the key that Parley would send."""
        return "authorization" in map(str.lower, self.headers)


def variable_name(text: str) -> str:
    """A variable's name for display; an invalid name is hidden, because it may be a key."""
    return text if not text or _VARIABLE.fullmatch(text) else HIDDEN


def key_source(provider: ProviderSettings) -> str:
    """A phrase about the source of a provider's key."""
    if provider.builtin:
        return "built in, needs no key"
    if provider.is_missing:
        return f"not installed: {provider.install}"
    if provider.is_agent:
        return "the agent has its own sign-in"
    if provider.signed_in:
        return "signed in"
    if provider.api_key_command:
        return f"the key comes from the command {program_name(provider.api_key_command)}"
    if not provider.api_key_env and provider.has_key_header:
        return "the key is in the headers"
    return f"key found in {provider.key_variable}" if provider.key_variable else "needs no key"


@frozen
class AgentLoop:
    """Limits for one agent's answers. If a field is None, the setting in `loop` applies."""

    max_iterations: int | None = field(default=None, metadata=rule(least=1))
    max_consecutive_errors: int | None = field(default=None, metadata=rule(least=1))
    timeout_s: float | None = None


@frozen
class AgentLimits:
    """More limits for one agent's answers. If a field is None, the setting applies.

    `max_tool_calls` replaces the setting; the others are in `safety`, and only lower its limits.
    """

    max_tool_calls: CallLimits | None = None
    max_tools_per_request: int | None = None
    max_tokens_per_request: int | None = field(default=None, metadata=rule(least=1))


@frozen
class Agent:
    """An agent that answers chats. If a field is None, the setting with the same name applies.

    `parameters` override the provider's parameters.
    `newest` chooses the model from the provider's list, as `model_choice` describes; without a
    list, and if no model fits, `model` is used. `window` and `max_output` replace the list's
    values.
    """

    name: str = ""
    provider: str = ""
    model: str = ""
    newest: tuple[str, ...] = ()
    system_prompt: str | None = None
    tools: tuple[str, ...] | None = None
    tool_mode: ToolMode | None = None
    web_search: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    thinking: ThinkingSettings | None = None
    price: Price | None = None
    window: int | None = field(default=None, metadata=rule(least=1))
    max_output: int | None = field(default=None, metadata=rule(least=1))
    loop: AgentLoop | None = None
    limits: AgentLimits | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)


@frozen
class Loop:
    """Limits for the tool calls in an answer."""

    max_iterations: int = field(default=10, metadata=rule(least=1))
    max_consecutive_errors: int = field(default=3, metadata=rule(least=1))
    timeout_s: float = 120.0
    parallel: bool = True
    result_max_bytes: int = 102400


@frozen
class Retry:
    """`broken_replies`: how many times to ask again if a reply breaks off."""

    broken_replies: int = 1


@frozen
class Safety:
    """Limits that neither agents nor files can raise."""

    max_tools_per_request: int = 5
    rate_limit_per_minute: int = field(default=30, metadata=rule(least=1))
    max_tokens_per_request: int | None = None
    blocked_tool_patterns: tuple[str, ...] = ()


TOOLS_SHARE = 0.15
"""The share of a model's window that tools may take, unless `tools.budget_tokens` is set."""
TOOLS_TOKENS = 8_000
"""How many tokens tools may take for a model whose window is unknown."""


@frozen
class Tools:
    """How many tokens tool schemas may take; of any further tools, a model receives only the
    names.
    """

    budget_tokens: int | None = field(default=None, metadata=rule(least=0))


@frozen
class Approval:
    """Rules for all chats. `deny` beats `ask`, `ask` beats the user's permissions, and these beat
    `auto`.

    A flawed rule in `auto` is left out, because it might allow more than intended. With a flawed
    rule in `ask`, Parley asks about all calls.
    """

    auto: tuple[Pattern, ...] = field(default=(), metadata=rule(is_strict=True))
    deny: tuple[Pattern, ...] = ()
    auto_read_only: bool = False
    ask: tuple[Pattern, ...] = ()


@frozen
class PromptTools:
    """Tools as text: how to retry failed calls.

    `records` is a file to which failed replies are written together with the corrected reply, as a
    line of JSON; `templates` is a file or folder with your own prompt templates.
    """

    max_retries: int = 3
    retry_delay_ms: int = 1000
    temperature_reduction: float = 0.1
    records: str | None = None
    templates: str | None = None


@frozen
class Xml:
    """Calls between tags: `single` reads only the first call in a reply."""

    filter: Literal["single", "unlimited"] = "single"


@frozen
class Status:
    """`llm`: a model describes a running tool's work in a sentence. `model`: the model for that.

    `notify`: report the end of a turn if no window shows its chat.
    """

    llm: bool = True
    model: str | None = None
    notify: bool = True


@frozen
class LogSettings:
    """`keep_days`: for how many days Parley keeps the records of calls, choices and requests; 0
    means forever.
    """

    keep_days: int = field(default=365, metadata=rule(least=0))


@frozen
class ChoiceKeys:
    """The key for each choice; false or "" for no key. If `enabled` is false, there are no keys."""

    enabled: bool = field(default=True, metadata=rule(is_short=True))
    ya: Key = Key("ya")
    yA: Key = Key("yA")  # noqa: N815 - its name is the key
    yo: Key = Key("yo")
    yO: Key = Key("yO")  # noqa: N815
    yn: Key = Key("yn")
    yN: Key = Key("yN")  # noqa: N815


@frozen
class Keys:
    """`scope`: how to select the calls to which a choice key applies. The other settings are keys
    ("" for no key).

    A text object's key is the letter after `i` and `a`.
    """

    scope: Scope = "letter"
    respond: Key = Key("<C-g><C-g>")
    stop: Key = Key("<C-g>x")
    agent: Key = Key("<C-g>a")
    apply: Key = Key("<C-g>p")
    outline: Key = Key("<C-g>t")
    help: Key = Key("g?")
    question: Key = Key("<C-g>q")
    question_object: Key = Key("q")
    answer_object: Key = Key("r")
    call_object: Key = Key("T")
    code_object: Key = Key("c")
    choices: ChoiceKeys = field(default_factory=ChoiceKeys)


@frozen
class Highlight:
    """`treesitter`: highlight chats with Treesitter if its Markdown parser is installed and nothing
    else highlights the buffer with Treesitter already.
    """

    treesitter: bool = True


@frozen
class Mcp:
    """The MCP servers; `config_file` is the path of a file with more servers; `mock` offers the
    mock server in all chats.

    `start`: when to start servers, at the first question or when a chat is opened.
    """

    servers: Mapping[str, ServerSettings] = field(default_factory=dict)
    config_file: str | None = None
    mock: bool = False
    start: Literal["lazy", "chat"] = "lazy"


@frozen
class WorkspaceSettings:
    """Parley's own file and command tools. `enabled`: offer them in any folder (true), in none
    (false), or only in a Git work tree or if `root` is set ("project").

    `root` is the folder that the tools work in; "" for the work tree, else the working directory.
    `command` offers commands; `sandbox` runs commands in a sandbox if there is one ("auto"), always
    ("require") or never ("off"); `network` lets sandboxed commands use the network. `save` writes a
    buffer that had no unsaved changes after an edit.
    """

    enabled: Literal["project", True, False] = field(
        default="project", metadata=rule(is_short=True)
    )
    root: str = ""
    command: bool = True
    sandbox: Literal["auto", "require", "off"] = "auto"
    network: bool = False
    save: bool = True


@frozen
class SkillSettings:
    """Skills. `enabled`: offer the user's skills and the project's to models that have tools.
    `budget_tokens`: how many tokens the list of names and descriptions may take.
    """

    enabled: bool = field(default=True, metadata=rule(is_short=True))
    budget_tokens: int = 2_000


def _agent(name: str, command: tuple[str, ...], package: str) -> ProviderSettings:
    return ProviderSettings(name, ACP, command=command, install=f"npm install -g {package}")


PROVIDERS: Mapping[str, ProviderSettings] = {
    p.name: p
    for p in (
        ProviderSettings(
            "anthropic",
            "anthropic",
            None,
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_API_KEY",
            quirks=(),
            official=True,
        ),
        ProviderSettings(
            "openai", "openai", None, "OPENAI_BASE_URL", "OPENAI_API_KEY", quirks=(), official=True
        ),
        ProviderSettings(
            "gemini",
            "openai",
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            None,
            "GEMINI_API_KEY",
            model_list="gemini",
            quirks=(*COMPATIBLE, "thought_signatures"),
        ),
        ProviderSettings(
            "ollama",
            "openai",
            "http://127.0.0.1:11434/v1",
            "OLLAMA_BASE_URL",
            model_list="ollama",
        ),
        ProviderSettings(
            "openrouter",
            "openai",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_BASE_URL",
            "OPENROUTER_API_KEY",
            signs_in=True,
        ),
        # Their programs: npm's pages of these packages, and for Copilot
        # docs.github.com/en/copilot/reference/copilot-cli-reference/acp-server (2026-11-26).
        _agent("claude-code", ("claude-agent-acp",), "@agentclientprotocol/claude-agent-acp"),
        _agent("codex", ("codex-acp",), "@agentclientprotocol/codex-acp"),
        _agent("gemini-cli", ("gemini", "--acp"), "@google/gemini-cli"),
        _agent("copilot", ("copilot", "--acp"), "@github/copilot"),
        ProviderSettings("demo", "anthropic", quirks=(), official=True, builtin=True),
        ProviderSettings(
            "demo-openai", "openai", api="chat", quirks=("think_tags",), official=True, builtin=True
        ),
    )
}

AGENTS: tuple[Agent, ...] = (
    Agent("Claude", "anthropic", "claude-sonnet-5-5", ("sonnet", "claude-sonnet-*")),
    Agent("ChatGPT", "openai", "gpt-5.6", ("gpt-*-sol", "gpt-*")),
    Agent("Gemini", "gemini", "gemini-pro-latest"),
    Agent("OpenRouter", "openrouter", "openrouter/auto"),
    Agent("Ollama", "ollama", "llama3.1", ("*",)),
    Agent("Claude-Code", "claude-code"),
    Agent("Codex", "codex"),
    Agent("Gemini-CLI", "gemini-cli"),
    Agent("Copilot", "copilot"),
    Agent("Demo", "demo", "demo"),
    Agent("Demo-OpenAI", "demo-openai", "demo"),
    Agent("Demo-Text", "demo-openai", "demo-text"),
)
DEMO = "Demo"


@frozen
class Settings:
    """All settings, with their defaults."""

    chat_dir: str | None = None
    save: Literal["chats", "always"] = "chats"
    picker: Literal["auto", "select", "snacks", "telescope", "fzf-lua"] = "auto"
    pictures: Literal["auto", "snacks", "image.nvim", "off"] = "auto"
    start_insert: bool = True
    agent: str | None = None
    system_prompt: str = SYSTEM_PROMPT
    instructions: tuple[str, ...] = INSTRUCTION_FILES
    fill_topic: bool = True
    max_full_exchanges: int = 42
    max_tool_calls: CallLimits = field(default_factory=CallLimits)
    tool_mode: ToolMode = "auto"
    prompt_tools: PromptTools = field(default_factory=PromptTools)
    xml: Xml = field(default_factory=Xml)
    thinking: ThinkingSettings = field(default_factory=ThinkingSettings)
    agents: tuple[Agent, ...] = ()
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    tools: Tools = field(default_factory=Tools)
    loop: Loop = field(default_factory=Loop)
    retry: Retry = field(default_factory=Retry)
    safety: Safety = field(default_factory=Safety)
    status: Status = field(default_factory=Status)
    log: LogSettings = field(default_factory=LogSettings)
    approval: Approval = field(default_factory=Approval)
    keys: Keys = field(default_factory=Keys)
    highlight: Highlight = field(default_factory=Highlight)
    mcp: Mcp = field(default_factory=Mcp)
    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    skills: SkillSettings = field(default_factory=SkillSettings)
    logins: frozenset[str] = field(default=frozenset(), metadata=rule(is_internal=True))
    """The providers that the user is signed in to."""
    installed: frozenset[str] = field(default=frozenset(), metadata=rule(is_internal=True))
    """The providers whose agents' programs are installed."""

    def __post_init__(self) -> None:
        limits: object = self.max_tool_calls
        if not isinstance(limits, CallLimits):
            raise SettingsError(f"max_tool_calls: expected CallLimits, got {limits!r}")

    def with_servers(self, more: Mapping[str, ServerSettings]) -> Self:
        """These settings with more servers; existing servers stay unchanged."""
        return replace(self, mcp=replace(self.mcp, servers={**more, **self.mcp.servers}))

    def with_logins(self, names: Iterable[str]) -> Self:
        """These settings, with the providers that the user is signed in to."""
        logins = frozenset(names)
        return self if logins == self.logins else replace(self, logins=logins)

    def with_installed(self, names: Iterable[str]) -> Self:
        """These settings, with the providers whose agents' programs are installed."""
        installed = frozenset(names)
        return self if installed == self.installed else replace(self, installed=installed)

    def provider(self, name: str) -> ProviderSettings | None:
        """The user's provider with this name, else the built-in provider; None if neither
        exists.
        """
        provider = self.providers.get(name) or PROVIDERS.get(name)
        if provider and provider.signs_in and name in self.logins:
            return replace(provider, signed_in=True)
        if provider and provider.install and name in self.installed:
            return replace(provider, is_installed=True)
        return provider

    def all_providers(self) -> dict[str, ProviderSettings]:
        """The user's providers, then the built-in providers with other names, by name."""
        names = dict.fromkeys((*self.providers, *PROVIDERS))
        return {name: provider for name in names if (provider := self.provider(name))}

    def all_agents(self) -> tuple[Agent, ...]:
        """The user's agents, then the built-in agents with other names."""
        own = {agent.name for agent in self.agents}
        return (*self.agents, *(agent for agent in AGENTS if agent.name not in own))

    def named_agent(self, name: str) -> Agent | None:
        """The agent with this name; None if there is none.

        `PROVIDER/MODEL` is the name of an agent that every provider has.
        """
        named = next((agent for agent in self.all_agents() if agent.name == name), None)
        provider, slash, model = name.partition("/")
        if named or not (slash and self.provider(provider) and is_model_name(model)):
            return named
        return Agent(name, provider, model)

    def default_agent(self, environ: Mapping[str, str]) -> Agent:
        """The agent in the settings, else the first agent with a key, else the first built-in agent
        of another program that is installed, else the demo agent."""
        if self.agent and (agent := self.named_agent(self.agent)):
            return agent
        usable = [agent for agent in self.all_agents() if self._has_key(agent, environ)]
        usable += [agent for agent in self.all_agents() if self._is_installed(agent)]
        demo = self.named_agent(DEMO)
        assert demo is not None, "the demo agent is built in"
        return next(iter(usable), demo)

    def missing_key(self, agent: Agent, environ: Mapping[str, str]) -> str:
        """The name, for display, of the unset variable for this agent's key or headers; "" if none
        is unset.
        """
        provider = self.provider(agent.provider)
        if provider is None or provider.builtin:
            return ""
        if unset := next((name for name in provider.header_variables if name not in environ), ""):
            return variable_name(unset)
        if provider.api_key_command or not provider.api_key_env or provider.signed_in:
            return ""
        return "" if environ.get(provider.api_key_env) else provider.key_variable

    def _is_installed(self, agent: Agent) -> bool:
        provider = self.provider(agent.provider)
        return bool(provider and provider.is_installed)

    def _has_key(self, agent: Agent, environ: Mapping[str, str]) -> bool:
        provider = self.provider(agent.provider)
        if provider is None or provider.builtin:
            return False
        return bool(
            provider.api_key_command
            or provider.signed_in
            or (provider.has_key_header and not self.missing_key(agent, environ))
            or (provider.api_key_env and environ.get(provider.api_key_env))
        )
