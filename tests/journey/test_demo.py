import json

from command_line import governor


def test_the_demo_plays_to_its_end() -> None:
    said = governor("demo", "--json")
    assert said.code == 0, said.out + said.err
    found = json.loads(said.out.splitlines()[-1])
    assert found["ok"] is True
    assert found["reader"] == "values"
    assert all(step["ok"] for step in found["steps"])
