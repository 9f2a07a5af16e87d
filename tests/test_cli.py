"""The command line as a person uses it."""

import argparse
import atexit
import gc
import subprocess
import sys
from importlib.metadata import version

import pytest

from glasses.cli import main, run_command
from glasses.runtime.ahead import AHEAD


def ending(error):
    """The exit status of a command whose action raises."""

    def action(options):
        raise error

    return run_command("glasses", argparse.Namespace(action=action), install="glasses[study]")


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (ValueError("budget must be at least 1, got 0."), 2, "glasses: budget must be at least 1, got 0.\n"),
        (
            FileNotFoundError(2, "No such file or directory", "study.toml"),
            2,
            "glasses: study.toml: No such file or directory.\n",
        ),
        (ImportError("no", name="optuna"), 2, "glasses: this command needs optuna: pip install 'glasses[study]'.\n"),
        (
            KeyboardInterrupt(),
            130,
            "\nglasses: interrupted; what was finished is kept, and the same command goes on from here.\n",
        ),
    ],
)
def test_how_commands_end(error, status, sentence, capsys):
    assert ending(error) == status
    assert capsys.readouterr().err == sentence


def test_errors_of_the_program_itself_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        ending(ZeroDivisionError())


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_the_installed_command_and_the_module_are_the_same():
    by_module = subprocess.run([sys.executable, "-m", "glasses", "--help"], capture_output=True, text=True, check=True)
    installed = subprocess.run([f"{sys.prefix}/bin/glasses", "--help"], capture_output=True, text=True, check=True)
    assert by_module.stdout == installed.stdout


def test_the_version_and_help_by_name(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"glasses {version('glasses')}\n"
    for words, expected in ((["help"], "examples:"), (["help", "forecast"], "usage: glasses forecast")):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
        assert expected in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["help", "fly"])
    assert stop.value.code == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err


@pytest.fixture
def collector(monkeypatch):
    """What the collector of garbage is set to, back as it was afterwards."""
    before, registered = gc.get_threshold(), []
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(AHEAD, "enabled", AHEAD.enabled)
    yield lambda: (gc.get_threshold()[0], [each for each in registered if each is gc.freeze])
    gc.set_threshold(*before)


@pytest.mark.parametrize("command", ["tell", "ask", "run", "worker", "serve"])
def test_only_a_process_of_a_brief_command_hardly_looks_for_garbage(command, collector, monkeypatch, tmp_path):
    usual = (gc.get_threshold()[0], [])
    arguments = [command, str(tmp_path / "none.toml"), *(["1"] if command == "tell" else [])]
    assert main(arguments) == 2  # called from a program that may go on
    assert collector() == usual
    monkeypatch.setattr(sys, "argv", ["glasses", *arguments])
    assert main() == 2
    assert collector() == ((1_000_000, [gc.freeze]) if command in ("tell", "ask") else usual)
