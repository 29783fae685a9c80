"""`parley completion`: scripts that complete `parley` commands in bash, zsh and fish.

The scripts are generated from the command table, so that they match the help. The names of agents
and prompts and the known chats are looked up during completion, because they come from the user's
settings and folders.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path

from parley.chat.transcript import CHOICES
from parley.cli.arguments import SHELLS, Parser, parser
from parley.cli.exits import COMPLETE
from parley.cli.terminal import say
from parley.settings.load import SettingsFile
from parley.settings.origins import entries
from parley.settings.values import Settings

_AGENTS = "parley agents 2>/dev/null | sed -e 's/^..//' -e 's/  .*//'"
"""A shell command that prints the agent names, one per line."""

_PROMPTS = "parley prompts 2>/dev/null | sed -e 's/  .*//'"
"""A shell command that prints the names of the prompts in files, one per line."""
_CHATS = "parley list --starting"
"""A shell command that prints the known chats whose path or name starts with its argument."""


class _Kind(Enum):
    """Kinds of values without a fixed list."""

    NOTHING, CHAT, FILE, AGENT, PROMPT = range(5)


def completion(arguments: argparse.Namespace) -> int:
    """Print a shell completion script for commands, options, chats and agents."""
    scripts = dict(zip(SHELLS, (bash, zsh, fish), strict=True))
    say(scripts[arguments.shell](parser()), end="")
    return COMPLETE


def _kind(action: argparse.Action) -> _Kind:
    """The kind of an argument's value."""
    if action.dest in ("agent", "agents"):
        return _Kind.AGENT
    if action.dest == "prompt":
        return _Kind.PROMPT
    if action.dest in ("file", "files", "chat") and (action.help or "").startswith("a chat"):
        return _Kind.CHAT
    is_file = action.dest in ("file", "files") or action.metavar in ("FILE", "PATH")
    return _Kind.FILE if is_file else _Kind.NOTHING


def _options(command: Parser) -> list[argparse.Action]:
    return [action for action in command.arguments if action.option_strings]


def _positionals(command: Parser) -> list[argparse.Action]:
    return [action for action in command.arguments if not action.option_strings]


def _about(action: argparse.Action) -> str:
    """The first clause of an argument's help."""
    return re.split("[;:] ", action.help or "")[0]


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _words(action: argparse.Action) -> list[str]:
    if action.dest == "choose":  # it also takes ID=CHOICE
        return list(CHOICES)
    if action.dest == "key":
        return _settings()
    return list(map(str, action.choices or ()))


def _settings() -> list[str]:
    """The names of all settings and their tables."""
    names = [entry.name for entry in entries(Settings(), SettingsFile(Path()), {})]
    return sorted({*names, *(name.partition(".")[0] for name in names)})


# --- bash, including 3.2 on macOS, which lacks `mapfile` and `compopt` ----------------------------

_BASH = r"""# Completion of parley for bash, made by: parley completion bash

_parley_add() {
    local line
    while IFS= read -r line; do
        if [[ $line == "$cur"* ]]; then COMPREPLY+=("$(printf %q "$line")"); fi
    done
}

_parley_files() {
    local bare=${cur//\\/} line
    bare=${bare#[\'\"]}
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
        if [[ $1 ]]; then compgen -f -X "!$1" -- "$bare"; compgen -d -- "$bare"
        else compgen -f -- "$bare"; fi | sort -u
    )
}

_parley_chats() {
    local bare=${cur//\\/} line
    bare=${bare#[\'\"]}
    _parley_files '*.md'
    [[ $bare ]] || return
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(@CHATS@ "$bare" 2>/dev/null)
}

_parley_nothing() {
    compopt +o default +o bashdefault 2>/dev/null
}

_parley_words() {
    _parley_add < <(printf '%s\n' "$@")
}

_parley() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= i
    COMPREPLY=()
    if [[ $cur == = ]]; then cur=
    elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
    done
    case $command:$previous in
    @VALUES@
    esac
    case $command:$cur in
    @OPTIONS@
    esac
    case $command in
    @POSITIONALS@
    esac
}

complete -o bashdefault -o default -F _parley parley
"""


def bash(root: Parser) -> str:
    """The script for bash."""
    values, options, positionals = list[str](), list[str](), list[str]()
    for name, command in root.commands.items():
        for action in filter(_takes_value, _options(command)):
            patterns = "|".join(f"{name}:{option}" for option in action.option_strings)
            values.append(f"{patterns}) {_bash_value(action)}; return ;;")
        names = [option for action in _options(command) for option in action.option_strings]
        options.append(f"{name}:-*) _parley_words {shlex.join([*names, '--help'])}; return ;;")
        for action in _positionals(command)[:1]:
            positionals.append(f"{name}) {_bash_value(action)} ;;")
    options.append(":-*) _parley_words --help --version; return ;;")
    positionals.append(f"'') _parley_words {shlex.join(root.commands)} ;;")
    return _filled(_BASH, CHATS=[_CHATS], VALUES=values, OPTIONS=options, POSITIONALS=positionals)


def _bash_value(action: argparse.Action) -> str:
    if words := _words(action):
        return f"_parley_words {shlex.join(words)}"
    known = {
        _Kind.CHAT: "_parley_chats",
        _Kind.FILE: "_parley_files ''",
        _Kind.AGENT: f"_parley_add < <({_AGENTS})",
        _Kind.PROMPT: f"_parley_add < <({_PROMPTS})",
    }
    return known.get(_kind(action), "_parley_nothing")


# --- zsh ------------------------------------------------------------------------------------------

_ZSH = r"""#compdef parley
# Completion of parley for zsh, made by: parley completion zsh

_parley_agents() {
    local -a agents
    agents=(${(f)"$(@AGENTS@)"})
    compadd -- $agents
}

_parley_prompts() {
    local -a prompts
    prompts=(${(f)"$(@PROMPTS@)"})
    compadd -- $prompts
}

_parley_chats() {
    local -a chats
    _files -g "*.md"
    [[ -n $PREFIX ]] || return
    chats=(${(f)"$(@CHATS@ ${(Q)PREFIX} 2>/dev/null)"})
    compadd -U -f -- $chats
}

_parley() {
    local curcontext=$curcontext state line
    typeset -A opt_args
    _arguments -C '(- *)'{-h,--help}'[show help]' '(- *)--version[show the version]' \
        '1: :->command' '*:: :->argument'
    case $state in
    command)
        local -a commands
        commands=(
            @COMMANDS@
        )
        _describe command commands
        ;;
    argument)
        case $words[1] in
        @CASES@
        esac
        ;;
    esac
}

if [[ $funcstack[1] == _parley ]]; then _parley "$@"; else compdef _parley parley; fi
"""


def zsh(root: Parser) -> str:
    """The script for zsh."""
    commands = [
        shlex.quote(f"{name}:{(command.description or '').rstrip('.')}")
        for name, command in root.commands.items()
    ]
    cases = (
        f"{name}) _arguments -s {' '.join(_zsh_specs(command))} ;;"
        for name, command in root.commands.items()
    )
    return _filled(
        _ZSH,
        AGENTS=[_AGENTS],
        PROMPTS=[_PROMPTS],
        CHATS=[_CHATS],
        COMMANDS=commands,
        CASES=cases,
    )


def _zsh_specs(command: Parser) -> Iterator[str]:
    yield "'(- *)'{-h,--help}'[show help]'"
    for action in _options(command):
        about = re.sub(r"([\\\[\]])", r"\\\1", _about(action))
        value = f":{_zsh_message(action)}:{_zsh_value(action)}" if _takes_value(action) else ""
        for option in action.option_strings:
            ending = "=" if value and option.startswith("--") else ""
            yield shlex.quote(f"*{option}{ending}[{about}]{value}")
    for action in _positionals(command):
        many = {"+": "*", "*": "*", "?": ":"}.get(str(action.nargs or ""), "")
        yield shlex.quote(f"{many}:{_zsh_message(action)}:{_zsh_value(action)}")


def _zsh_message(action: argparse.Action) -> str:
    return str(action.metavar or action.dest).lower()


def _zsh_value(action: argparse.Action) -> str:
    if words := _words(action):
        return f"({' '.join(words)})"
    known = {
        _Kind.CHAT: "_parley_chats",
        _Kind.FILE: "_files",
        _Kind.AGENT: "_parley_agents",
        _Kind.PROMPT: "_parley_prompts",
    }
    return known.get(_kind(action), " ")


# --- fish -----------------------------------------------------------------------------------------

_FISH = r"""# Completion of parley for fish, made by: parley completion fish

function __parley_command
    set -l words (commandline -opc)
    if test (count $words) -lt 2
        test -z "$argv"
    else
        test "$words[2]" = "$argv"
    end
end

function __parley_agents
    @AGENTS@
end

function __parley_prompts
    @PROMPTS@
end

function __parley_chats
    __fish_complete_suffix .md
    set -l word (commandline -ct)
    test -n "$word"; and @CHATS@ $word 2>/dev/null
end

complete -c parley -f
complete -c parley -s h -l help -d 'show help'
complete -c parley -n '__parley_command ""' -l version -d 'show the version'
@LINES@
"""


def fish(root: Parser) -> str:
    """The script for fish."""
    lines = list[str]()
    for name, command in root.commands.items():
        about = _fish_text((command.description or "").rstrip("."))
        lines.append(f"complete -c parley -n '__parley_command \"\"' -a {name} -d {about}")
        begin = f"complete -c parley -n '__parley_command {name}'"
        for action in _options(command):
            names = (
                f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}"
                for o in action.option_strings
            )
            flag = "r" if _kind(action) is _Kind.FILE else "x"
            value = f" -{flag}{_fish_value(action)}" if _takes_value(action) else ""
            lines.append(f"{begin} {' '.join(names)}{value} -d {_fish_text(_about(action))}")
        for action in _positionals(command)[:1]:
            if value := _fish_value(action):
                lines.append(f"{begin}{value}")
    return _filled(_FISH, AGENTS=[_AGENTS], PROMPTS=[_PROMPTS], CHATS=[_CHATS], LINES=lines)


def _fish_value(action: argparse.Action) -> str:
    if words := _words(action):
        return f" -a {_fish_text(' '.join(words))}"
    known = {
        _Kind.CHAT: " -k -a '(__parley_chats)'",
        _Kind.FILE: " -F",
        _Kind.AGENT: " -a '(__parley_agents)'",
        _Kind.PROMPT: " -a '(__parley_prompts)'",
    }
    return known.get(_kind(action), "")


def _fish_text(text: str) -> str:
    """A text in fish quotes, with backslashes before quotes and backslashes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _filled(script: str, **parts: Iterable[str]) -> str:
    """The script with its placeholders replaced by lines, at the same indentation."""
    for name, lines in parts.items():
        before, _, after = script.partition(f"@{name}@")
        indent = before[len(before.rstrip(" ")) :]
        script = "".join((before, f"\n{indent}".join(lines), after))
    return script
