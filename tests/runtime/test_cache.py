"""The folder of files that can be made again: nobody else's files are read, nothing half-written stays, nothing ever fails."""

import os
import stat
import threading
import warnings

import pytest

from glasses.runtime import cache


@pytest.fixture(autouse=True)
def say_again():
    cache._warn_of.cache_clear()


def test_what_is_written_is_read(tmp_path):
    cache.write(tmp_path / "folder" / "a", b"payload")
    assert cache.read(tmp_path / "folder" / "a") == b"payload"
    assert cache.read(tmp_path / "folder" / "b") is None
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700


def test_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for word in ("off", "0", "none", ""):
        monkeypatch.setenv("GLASSES_CACHE_DIR", word)
        assert cache.cache_folder() is None
    monkeypatch.delenv("GLASSES_CACHE_DIR")
    assert cache.cache_folder() == tmp_path / "glasses" / "programs"
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path / "mine"))
    assert cache.cache_folder() == tmp_path / "mine"


def test_no_home_folder_is_no_failure(monkeypatch):
    for name in ("GLASSES_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)  # nobody in the list of users
    assert cache.cache_folder() is None


def test_links_pipes_and_folders_are_not_read(tmp_path):
    """A link to a file of the user's own would pass a check of the owner, and a pipe would wait for ever."""
    cache.write(tmp_path / "elsewhere" / "a", b"payload")
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    (folder / "link").symlink_to(tmp_path / "elsewhere" / "a")
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    answers = []
    thread = threading.Thread(
        target=lambda: answers.extend(cache.read(folder / name) for name in ("link", "pipe", "directory")), daemon=True
    )
    thread.start()
    thread.join(20)
    assert answers == [None, None, None]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_not_used_and_said_once(tmp_path, mode):
    cache.write(tmp_path / "shared" / "a", b"payload")
    (tmp_path / "shared").chmod(mode)
    with pytest.warns(UserWarning, match="is not used, because others can write into it"):
        assert cache.read(tmp_path / "shared" / "a") is None
    cache.write(tmp_path / "shared" / "b", b"payload")  # said once: a second warning would be an error here
    assert cache.read(tmp_path / "shared" / "b") is None
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["a"]


def test_a_file_that_others_can_write_is_not_read(tmp_path):
    cache.write(tmp_path / "own" / "a", b"payload")
    (tmp_path / "own" / "a").chmod(0o660)
    assert cache.read(tmp_path / "own" / "a") is None


def test_somebody_elses_files_and_folders_are_not_read(tmp_path, monkeypatch):
    cache.write(tmp_path / "own" / "a", b"payload")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(UserWarning, match="GLASSES_CACHE_DIR"):
        assert cache.read(tmp_path / "own" / "a") is None


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.write(tmp_path / "own" / "a", b"payload")
    assert list((tmp_path / "own").iterdir()) == []


def test_an_unusable_folder_is_no_failure(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.write(tmp_path / "file" / "inside" / "a", b"payload")
        assert cache.read(tmp_path / "file" / "inside" / "a") is None


def test_what_was_not_used_for_longest_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSES_CACHE_MB", "0.004")
    for k in range(6):
        cache.write(tmp_path / f"program{k}", bytes(500))
        os.utime(tmp_path / f"program{k}", (k, k))
    assert cache.read(tmp_path / "program0") == bytes(500)  # used now
    stale, fresh = tmp_path / f"{cache._TEMPORARY}old", tmp_path / f"{cache._TEMPORARY}new"
    stale.touch()
    os.utime(stale, (0, 0))
    fresh.touch()
    cache.write(tmp_path / "last", bytes(2000))
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"program0", "last", fresh.name}


def test_a_size_that_is_no_number_is_the_usual_one(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSES_CACHE_MB", "plenty")
    cache.write(tmp_path / "program", b"payload")
    assert cache.read(tmp_path / "program") == b"payload"


def waiting(path, said):
    """A second one that wants to make the file; what it was told."""

    def make():
        with cache.alone(path) as waited:
            said.append(waited)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    return thread


def test_who_makes_a_file_is_waited_for(tmp_path):
    said = []
    with cache.alone(tmp_path / "new" / "a") as waited:
        second, other = waiting(tmp_path / "new" / "a", said), waiting(tmp_path / "new" / "b", other_said := [])
        other.join(20)
        assert other_said == [False]  # another file is another matter
        second.join(0.1)
        assert said == []
    second.join(20)
    assert (waited, said) == (False, [True])
    assert list((tmp_path / "new").iterdir()) == []


def test_nobody_waits_for_long_nor_where_nothing_can_be_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_PATIENCE", 0.05)
    with cache.alone(tmp_path / "a"):
        waiting(tmp_path / "a", stopped := []).join(20)
    assert stopped == [True]
    with cache.alone(tmp_path / "a" / "b"), cache.alone(tmp_path / "a" / "b") as waited:
        assert waited
    (tmp_path / "file").write_text("")
    with cache.alone(tmp_path / "file" / "a") as first, cache.alone(tmp_path / "file" / "a") as second:
        assert not first
        assert not second
