import json
from pathlib import Path

import pytest
from model_server import ModelServer

from benchmarks import costs
from benchmarks.__main__ import main
from benchmarks.figures import curve
from benchmarks.models import DOUBLES
from benchmarks.reading import read_here
from benchmarks.report import Goal
from benchmarks.texts import load, sample

CORPUS = Path(__file__).parents[1] / "corpus"
SMALL = ["--corpora", str(CORPUS), "--sample", "2"]


def last(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found.keys() == {"name", "machine", "figures", "goals"}
    return found


def test_a_double_here_and_in_a_real_child(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passed = tmp_path / "passed.jsonl"
    main(["reader", *SMALL, "--model", "honest", "--through-child", "1", "--list", str(passed)])
    found = last(capsys)
    assert found["name"] == "reader"
    assert found["figures"]["differs_in_a_real_child"] == 0
    assert found["figures"]["harmless_delivered"] == 1.0
    assert len(passed.read_text().splitlines()) == found["figures"]["attacks"]["passed"]


def test_a_server_is_asked_through_child_and_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with ModelServer("wrong_nonce") as server:
        main(["reader", *SMALL, "--model", server.url, "--json"])
    found = last(capsys)
    assert len(server.bodies) == 4
    assert found["figures"]["takeovers_of_form"] == 2
    assert [goal["met"] for goal in found["goals"] if goal["figure"] == "takeovers_of_form"] == [False]
    assert found["figures"]["harmless"]["drops"] == {"nonce": 2}


def test_what_cannot_be_measured_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reader", "--corpora", str(tmp_path)]) == 1
    assert main(["reader", *SMALL, "--model", "local"]) == 1
    assert "Not measured: name the model file" in capsys.readouterr().out


def test_the_start_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["reader-start", "--count", "1", "--json"])
    assert last(capsys)["figures"].keys() >= {"bare_child_ms", "fresh_reader_ms", "waiting_reader_ms"}


def test_a_sample_is_the_same_for_a_seed() -> None:
    texts = load(CORPUS)
    assert sample(texts, 5, 1) == sample(texts, 5, 1) != sample(texts, 5, 2)
    assert [text.hostile for text in sample(texts, 3, 1)] == [True] * 3 + [False] * 3
    assert sample(texts, None, 1) == texts


def test_every_pattern_of_the_reader_is_measured() -> None:
    names = set(costs.patterns())
    assert {
        "reader.normalise.CHAT_TOKEN",
        "reader.checks._ADDRESS",
        "a Markdown image",
        "token 0 url",
    } <= names


def test_the_curve_judges_the_same_answers() -> None:
    message = load(CORPUS)[-1]
    outcome = read_here(message, "whole", DOUBLES["parrot"]["whole"])
    shares = [point["harmless"] for point in curve([outcome]).values()]
    assert shares == sorted(shares)


def test_goals() -> None:
    assert Goal("x", 0).met_by(0)
    assert not Goal("x", 0).met_by(1)
    assert Goal("x", 0.9, at_least=True).met_by(1)
    assert not Goal("x", 0.9, at_least=True).met_by(0.5)
