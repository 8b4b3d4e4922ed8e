import argparse
import re
from importlib import import_module

import pytest
from command_line import governor

from governor import __version__
from governor.cli.main import COMMANDS, Parser


def leaves(parser: argparse.ArgumentParser, words: str = "") -> dict[str, str]:
    """Return the help of every command below a parser, by its words."""
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                full = f"{words} {name}".strip()
                deeper = leaves(below, full)
                if not deeper or below.get_default("func"):
                    found[full] = helps.get(name, "")
                found |= deeper
    return found


def all_leaves() -> dict[str, str]:
    found: dict[str, str] = {}
    for module in {command.module for command in COMMANDS.values()} - {"joining"}:
        parser = Parser(prog="governor")
        import_module(f"governor.cli.{module}").add_parsers(parser.add_subparsers())
        found |= leaves(parser)
    return found


def test_the_table_has_every_command_and_no_other() -> None:
    assert sorted(all_leaves()) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    said = governor(*name.split(), "--help")
    assert said.code == 0
    assert said.out.startswith(f"usage: governor {name}")


@pytest.mark.parametrize("group", ["agent", "pair", "operator", "skills", "service"])
def test_a_group_names_its_commands(group: str) -> None:
    said = governor(group, "--help")
    for name in COMMANDS:
        if name.startswith(f"{group} "):
            assert re.search(rf"^    {name.split()[1]}\b", said.out, re.MULTILINE), name
    said = governor(group)
    assert said.code == 2
    assert f"See: governor {group} --help" in said.err


def test_help_lists_every_command_and_every_exit_code() -> None:
    said = governor("--help")
    assert said.code == 0
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.help)}$", said.out, re.MULTILINE)
    assert "no governor is running" in said.out


def test_version() -> None:
    assert governor("--version").out == f"{__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "governor: Which command? See: governor --help"),
        (["sned"], "governor: There is no command 'sned'. Did you mean send? All of them: governor --help"),
        (["xyzzy"], "governor: There is no command 'xyzzy'. All of them: governor --help"),
        (["agent", "ad"], "See: governor agent --help"),
        (
            ["send", "hello"],
            "governor: The following arguments are required: --to. See: governor send --help",
        ),
        (["send", "--t", "eva", "hello"], "The following arguments are required: --to"),
        (["inbox", "--wait", "soon"], "'soon' is no number of seconds from 0 to 86400"),
        (["inbox", "--wait", "nan"], "'nan' is no number of seconds"),
        (["inbox", "--wait", "-1"], "no number of seconds"),
        (["show", "../etc"], "'../etc' is not an id; copy it from: governor inbox"),
        (["--hom", "x", "inbox"], "Unrecognized arguments: --hom"),
    ],
)
def test_a_wrong_command_line_is_one_line_with_the_next_step(words: list[str], message: str) -> None:
    said = governor(*words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_wrong_command_line_is_told_as_json_too() -> None:
    said = governor("send", "--json")
    assert (said.code, said.err) == (2, "")
    assert said.document["error"] == "usage"


def test_the_home_is_named_by_option_environment_or_custom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere/u")
    monkeypatch.delenv("GOVERNOR_HOME", raising=False)
    assert "in /nowhere/u/.bridge-governor." in governor("inbox").err
    monkeypatch.setenv("GOVERNOR_HOME", "")
    assert "in /nowhere/u/.bridge-governor." in governor("inbox").err
    monkeypatch.setenv("GOVERNOR_HOME", "~/elsewhere")
    assert "in /nowhere/u/elsewhere." in governor("inbox").err
    assert "in /nowhere/x." in governor("--home", "/nowhere/x", "inbox").err
    assert "in /nowhere/x." in governor("--home=/nowhere/x", "inbox").err
