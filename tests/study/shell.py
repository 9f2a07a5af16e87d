"""The command line as tests call it, and what a study's database holds."""

import sqlite3

from glasses.cli import main


def glasses(capsys, *arguments, status=0):
    """Run a command; what it printed, or its complaint."""
    capsys.readouterr()
    assert main([str(each) for each in arguments]) == status
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    if status == 2:
        assert printed.err.startswith("glasses: ")
        assert printed.err.endswith(".\n")
        assert printed.err.count("\n") == 1
        return printed.err
    return printed.out


def dump(path):
    with sqlite3.connect(path.with_suffix(".db")) as database:
        return list(database.iterdump())
