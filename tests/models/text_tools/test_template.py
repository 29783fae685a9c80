"""The user's prompt templates: a problem in a file is reported, and affects only that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.models.text_tools.template import Template, builtin_templates, load_templates

WRONG = {
    'stile = "code"': "stile: templates have no such field; did you mean style?",
    'style = "cod"': 'style: expected "schema" or "code", got "cod"; did you mean code?',
    'native = "yes"': 'native: expected true or false, got "yes"',
    'models = "q*"': 'models: expected a list of patterns, got "q*"',
    "models = [1]\njson = 2": "models[1]: expected a text, got 1; json: expected a text, got 2",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_problem_in_a_template_is_reported_with_its_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    (tmp_path / "other.toml").write_text('models = ["o*"]\nxml = " x \\n"', encoding="utf-8")
    templates, problems = load_templates(str(tmp_path))
    assert problems == (f"parley: prompt_tools.templates: {file}: {WRONG[text]}",)
    assert [template.name for template in templates][:1] == ["other"]


def test_a_template_takes_missing_fields_from_the_default(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('models = ["o*"]\nxml = " x \\n"', encoding="utf-8")
    default = builtin_templates()[-1]
    mine = Template("mine", ("o*",), default.native, default.style, default.json, "x")
    assert load_templates(str(file)) == ((mine, *builtin_templates()), ())
