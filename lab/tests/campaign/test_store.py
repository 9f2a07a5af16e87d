"""The results file: nothing lost, nothing twice, whatever happens to the process."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from glasses_lab.campaign.store import Store, read_records


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_append_and_reopen(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    with Store(path) as store:
        assert store.claim("a")
        store.append({"key": "a", "value": 1})
        assert not store.claim("a")
    with Store(path) as store:
        assert store.records["a"]["value"] == 1
        assert not store.claim("a")
        assert store.claim("b")
        store.append({"key": "a", "value": 2})  # written already: the first stays
    assert lines(path) == [{"key": "a", "value": 1}]


def test_a_cut_line_is_kept_aside_repaired_and_said(tmp_path):
    path, said = tmp_path / "results.jsonl", []
    whole = [json.dumps({"key": str(k), "y": [0.5] * 20}, separators=(",", ":")) for k in range(3)]
    path.write_text("\n".join(whole)[:-17])
    with Store(path, said.append) as store:
        assert set(store.records) == {"0", "1"}
        assert store.claim("2")
        store.append(json.loads(whole[2]))
    assert len(said) == 1
    assert "results.jsonl ends in the middle of a line: what there is of it was moved to results.jsonl.cut" in said[0]
    assert "the 2 runs before it are kept and its run will be done again" in said[0]
    assert path.read_text().splitlines() == whole
    assert (tmp_path / "results.jsonl.cut").read_text() == whole[2][:-17] + "\n"


def test_other_lines_are_left_alone_and_named(tmp_path):
    path, said = tmp_path / "results.jsonl", []
    text = '{"key": "a"}\nnot json\n[1]\n{"key": "b"}\n'
    path.write_text(text)
    with Store(path, said.append) as store:
        assert set(store.records) == {"a", "b"}
    assert path.read_text() == text
    assert "line 2, 3: not a whole record; kept in the file" in said[0]
    said.clear()
    assert [record["key"] for record in read_records(path, said.append)] == ["a", "b"]
    assert "line 2, 3" in said[0]


def test_a_missing_file_has_a_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"There is no results file .*: run the campaign first"):
        read_records(tmp_path / "none.jsonl")


def test_a_line_cut_by_another_process_does_not_spoil_the_next(tmp_path):
    path, said = tmp_path / "results.jsonl", []
    with Store(path, said.append) as store:
        store.append({"key": "a"})
        with path.open("a") as file:
            file.write('{"key": "b", "y": [0.1')  # killed here
        store.append({"key": "c"})
    assert lines(path) == [{"key": "a"}, {"key": "c"}]
    assert len(said) == 1


def test_a_failure_may_be_tried_again(tmp_path):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:
        store.append({"key": "a", "error": "no"})
        assert not store.claim("a")
        assert store.claim("a", again=True)
        store.append({"key": "a", "error": None})
        assert not store.claim("a", again=True)
    assert [record["error"] for record in read_records(path)] == [None]
    with Store(path) as store:
        assert store.records["a"]["error"] is None


def test_threads_share_a_store(tmp_path):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:

        def work(part):
            for k in range(part, 400, 4):
                assert store.claim(str(k))
                store.append({"key": str(k), "text": "x" * (37 * k % 9000)})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert len(store.records) == 400
    assert {line["key"] for line in lines(path)} == {str(k) for k in range(400)}
    assert len(lines(path)) == 400


OTHER = """
import sys
from pathlib import Path
from glasses_lab.campaign.store import Store
store = Store(Path(sys.argv[1])).__enter__()
print(*[store.claim(key) for key in sys.argv[2:]], flush=True)
sys.stdin.readline()
if store.claim("late"):
    store.append({"key": "late", "by": "other"})
print("done", flush=True)
sys.stdin.readline()
"""


def test_two_processes_never_hold_the_same_run(tmp_path):
    path = tmp_path / "results.jsonl"
    with Store(path) as store:
        assert store.claim("mine")
        other = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path), "mine", "theirs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert other.stdout.readline().split() == ["False", "True"]
            assert not store.claim("theirs")
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "done\n"
            assert not store.claim("late")  # finished by the other one since we looked
            assert store.records["late"]["by"] == "other"
        finally:
            other.kill()
            other.communicate()
        assert store.claim("theirs")  # its owner was killed: the claim died with it
        store.append({"key": "theirs", "by": "me"})
    assert [(line["key"], line["by"]) for line in lines(path)] == [("late", "other"), ("theirs", "me")]
