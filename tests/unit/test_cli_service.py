"""The service commands, against real executables `launchctl` and `systemctl` that keep state and record."""

import argparse
import json
import os
import plistlib
import pwd
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from governor.cli import service
from governor.cli.service_machine import Machine
from governor.cli.service_managers import CommandRunner, Completed
from governor.errors import GovernorError

ME = pwd.getpwuid(os.getuid()).pw_name
AGENT = "local.bridge-governor.agent"
DAEMON = "local.bridge-governor.daemon"

# Like the real one: bootout returns before the service is gone, which `draining` more prints will show;
# a label that is still there, or was disabled, cannot be bootstrapped (5).
LAUNCHCTL = """#!/bin/sh
cd "$STATE" || exit 99
echo "$*" >> calls
[ -e "fail-$1" ] && { cat "fail-$1"; exit "$(cat "code-$1")"; }
case $1 in
print)
    if [ -e draining ]; then
        left=$(cat draining)
        if [ "$left" -gt 0 ]; then echo $((left - 1)) > draining; else rm draining loaded; fi
    fi
    [ -e loaded ] || { echo "Could not find service" >&2; exit 113; }
    printf '%s = {\\n\\tactive count = 1\\n\\tstate = %s\\n\\tpid = 4242\\n}\\n' "$2" "$(cat loaded)" ;;
bootout)
    [ -e loaded ] || { echo "Boot-out failed: 3: No such process" >&2; exit 3; }
    cat drain-for > draining ;;
enable) touch enabled ;;
bootstrap)
    if [ -s settling ]; then sed -i.bak 1d settling; echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; fi
    { [ ! -e loaded ] && [ -e enabled ] && [ -r "$3" ]; } || { echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; }
    echo running > loaded ;;
kickstart) [ -e loaded ] || exit 113 ;;
*) exit 64 ;;
esac
"""

# A unit is known once daemon-reload has seen its file, and until it sees it gone.
SYSTEMCTL = """#!/bin/sh
cd "$STATE" || exit 99
echo "$*" >> calls
[ "$1" = --user ] && shift
[ -e "fail-$1" ] && { cat "fail-$1"; exit "$(cat "code-$1")"; }
case $1 in
daemon-reload) if [ -e "$UNIT" ]; then touch known; else rm -f known; fi ;;
show)
    if [ -e known ]; then echo LoadState=loaded; else echo LoadState=not-found; fi
    if [ -e active ]; then printf 'ActiveState=active\\nMainPID=4242\\n'; else printf 'ActiveState=inactive\\nMainPID=0\\n'; fi ;;
enable) [ -e known ] || exit 1; touch enabled ;;
restart) [ -e known ] || exit 5; touch active ;;
disable) [ -e known ] || exit 1; rm -f enabled active ;;
*) exit 64 ;;
esac
"""


@dataclass
class World:
    """One machine in a temporary folder."""

    machine: Machine
    state: Path
    capsys: pytest.CaptureFixture[str]
    naps: list[float]
    home: Path | None = None

    def run(self, *argv: str) -> tuple[int, str, str]:
        """Run `governor service ...`; return exit code, standard output, standard error."""
        parser = argparse.ArgumentParser()
        service.add_parsers(parser.add_subparsers(), lambda: self.machine)
        parser.set_defaults(home=self.home or self.machine.user_home / ".bridge-governor")
        args = parser.parse_args(["service", *argv])
        code = args.func(args)
        out, err = self.capsys.readouterr()
        return code, out, err

    def calls(self) -> list[str]:
        """Return the commands that were run since the last call of this."""
        log = self.state / "calls"
        calls = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return calls

    def fail(self, verb: str, code: int, output: str) -> None:
        """Have a command fail from now on."""
        (self.state / f"fail-{verb}").write_text(output)
        (self.state / f"code-{verb}").write_text(str(code))

    def alter(self, **changes: Any) -> None:  # noqa: ANN401 - any field of Machine
        """Change the machine."""
        self.machine = replace(self.machine, **changes)


Make = Callable[..., World]


def folder(path: Path) -> Path:
    """Make a folder and those above it, writable by their owner only, whatever the umask."""
    if not path.exists():
        folder(path.parent)
        path.mkdir()
        path.chmod(0o755)
    return path


@pytest.fixture
def world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Make:
    def make(platform: str, *, system: bool = False) -> World:
        state, path = tmp_path / "state", tmp_path / "bin"
        home = tmp_path / "root" / {"darwin": "var/db", "linux": "var/lib"}[platform] / "bridge-governor"
        for part in (state, path, home, tmp_path / "home/.bridge-governor", tmp_path / "opt/code"):
            folder(part)
        for governor_home in (home, tmp_path / "home/.bridge-governor"):
            (governor_home / "governor.toml").write_text("")
        for name, text in (("launchctl", LAUNCHCTL), ("systemctl", SYSTEMCTL)):
            (path / name).write_text(text)
            (path / name).chmod(0o755)
        (state / "drain-for").write_text("0")
        program = tmp_path / "opt/governor"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        unit = "root/etc/systemd/system" if system else "home/.config/systemd/user"
        naps: list[float] = []
        return World(
            Machine(
                platform=platform,
                uid=0 if system else 501,
                user_home=tmp_path / "home",
                program=program,
                code=(program, tmp_path / "opt/code"),
                run=CommandRunner(
                    {
                        "PATH": f"{path}:{os.defpath}",
                        "STATE": str(state),
                        "UNIT": str(tmp_path / unit / "governor.service"),
                    }
                ),
                sleep=naps.append,
                root=tmp_path / "root",
                trusted=frozenset({0, os.getuid()}),
            ),
            state,
            capsys,
            naps,
        )

    return make


def test_launch_agent_is_written_and_started(world: Make, tmp_path: Path) -> None:
    mac = world("darwin")
    code, out, err = mac.run("install")
    file = tmp_path / f"home/Library/LaunchAgents/{AGENT}.plist"
    assert (code, err) == (0, "")
    assert out.startswith(f"installed: {file}\n")
    assert mac.calls() == [
        f"print gui/501/{AGENT}",
        f"enable gui/501/{AGENT}",
        f"bootstrap gui/501 {file}",
        f"kickstart gui/501/{AGENT}",
    ]
    job = plistlib.loads(file.read_bytes())
    assert job["Label"] == AGENT
    assert job["ProgramArguments"] == [str(tmp_path / "opt/governor"), "run"]
    assert job["EnvironmentVariables"] == {"GOVERNOR_HOME": str(tmp_path / "home/.bridge-governor")}
    assert "UserName" not in job
    assert file.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_launch_daemon_has_a_user_of_its_own(world: Make, tmp_path: Path) -> None:
    mac = world("darwin", system=True)
    code, _, err = mac.run("install", "--system", "--user", ME, "--group", "agents")
    file = tmp_path / f"root/Library/LaunchDaemons/{DAEMON}.plist"
    assert (code, err) == (0, "")
    assert f"bootstrap system {file}" in mac.calls()
    job = plistlib.loads(file.read_bytes())
    assert (job["UserName"], job["GroupName"]) == (ME, "agents")
    assert job["EnvironmentVariables"] == {"GOVERNOR_HOME": str(tmp_path / "root/var/db/bridge-governor")}


def test_another_home_is_followed(world: Make, tmp_path: Path) -> None:
    mac = world("darwin")
    elsewhere = folder(tmp_path / "else where")
    (elsewhere / "governor.toml").write_text("")
    mac.home = elsewhere
    assert mac.run("install")[0] == 0
    job = plistlib.loads((tmp_path / f"home/Library/LaunchAgents/{AGENT}.plist").read_bytes())
    assert job["StandardErrorPath"] == f"{elsewhere}/service.log"


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_a_second_install_changes_nothing_and_restarts_nothing(world: Make, platform: str) -> None:
    here = world(platform)
    here.run("install")
    here.calls()
    code, out, _ = here.run("install", "--json")
    assert (code, json.loads(out)["state"]) == (0, "unchanged")
    assert len(here.calls()) == 1  # it only looked


def test_an_older_agent_is_gone_before_the_new_one_comes(world: Make) -> None:
    mac = world("darwin")
    mac.run("install")
    mac.calls()
    mac.alter(program=mac.machine.program.rename(mac.machine.program.with_name("moved")))
    (mac.state / "drain-for").write_text("3")
    code, out, err = mac.run("install")
    assert (code, err) == (0, "")
    assert out.startswith("updated: ")
    verbs = [call.split()[0] for call in mac.calls()]
    assert verbs == ["print", "bootout", *["print"] * 4, "enable", "bootstrap", "kickstart"]
    assert mac.naps == [0.5] * 3


def test_bootstrap_is_tried_again_while_launchd_settles(world: Make) -> None:
    mac = world("darwin")
    (mac.state / "settling").write_text("1\n2\n")
    assert mac.run("install")[0] == 0
    assert [call.split()[0] for call in mac.calls()].count("bootstrap") == 3


def test_a_file_that_launchd_never_takes_is_an_error(world: Make) -> None:
    mac = world("darwin")
    mac.fail("bootstrap", 5, "Bootstrap failed: 5: Input/output error")
    code, _, err = mac.run("install")
    assert code == 1
    assert "`launchctl bootstrap gui/501 " in err
    assert "Input/output error" in err
    assert len(mac.naps) == 60


def test_an_agent_that_never_goes_is_an_error(world: Make) -> None:
    mac = world("darwin")
    mac.run("install")
    (mac.state / "drain-for").write_text("1000")
    code, _, err = mac.run("uninstall")
    assert code == 1
    assert "the service is still there" in err
    assert sum(mac.naps) == 30


def test_kickstart_may_find_the_start_in_progress(world: Make) -> None:
    mac = world("darwin")
    mac.fail("kickstart", 37, "Operation already in progress")
    assert mac.run("install")[0] == 0
    mac.fail("kickstart", 1, "no")
    mac.run("uninstall")
    assert mac.run("install")[0] == 1


@pytest.mark.parametrize("code", [112, 125])
@pytest.mark.parametrize("command", ["install", "uninstall", "status"])
def test_without_a_login_at_the_screen_the_way_out_is_named(world: Make, command: str, code: int) -> None:
    mac = world("darwin")
    mac.fail("print", code, "Domain does not support specified action")
    done, _, err = mac.run(command)
    assert done == 1
    assert "logged in at the screen" in err
    assert "--system" in err


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_status_tells_what_the_manager_says(world: Make, platform: str) -> None:
    here = world(platform)
    code, out, _ = here.run("status")
    assert code == 1
    assert "not loaded" in out
    assert "governor service install" in out
    here.run("install")
    code, out, _ = here.run("status", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["ok"], facts["installed"], facts["running"], facts["pid"]) == (True, True, True, 4242)
    assert here.run("status")[1].splitlines()[0] in ("running, pid 4242", "active, pid 4242")


def test_status_of_a_stopped_service_names_its_output(world: Make) -> None:
    mac = world("darwin")
    mac.run("install")
    (mac.state / "loaded").write_text("spawn scheduled")
    code, out, _ = mac.run("status")
    assert code == 1
    assert out.splitlines()[0] == "spawn scheduled, pid 4242"
    assert "service.log" in out
    linux = world("linux")
    linux.run("install")
    (linux.state / "active").unlink()
    assert "journalctl --user -u governor.service" in linux.run("status")[1]


def test_what_launchctl_prints_is_not_trusted_to_stay_as_it_is(world: Make) -> None:
    mac = world("darwin")
    mac.run("install")
    mac.alter(run=lambda _: Completed(0, "something new"))
    code, out, _ = mac.run("status", "--json")
    assert code == 1
    assert json.loads(out)["detail"] == "unknown"


def test_a_service_that_was_stopped_by_hand_is_started_again(world: Make) -> None:
    linux = world("linux")
    linux.run("install")
    (linux.state / "active").unlink()
    assert linux.run("install")[1].startswith("started: ")


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_uninstall_stops_removes_and_leaves_the_home(world: Make, tmp_path: Path, platform: str) -> None:
    here = world(platform)
    here.run("install")
    here.calls()
    code, out, _ = here.run("uninstall")
    assert code == 0
    assert out.startswith("removed: ")
    assert not any((here.state / name).exists() for name in ("loaded", "known", "active"))
    assert (tmp_path / "home/.bridge-governor/governor.toml").exists()
    code, out, _ = here.run("uninstall", "--json")
    assert (code, json.loads(out)["state"]) == (0, "absent")


def test_uninstall_waits_until_the_agent_is_gone(world: Make) -> None:
    mac = world("darwin")
    mac.run("install")
    mac.calls()
    (mac.state / "drain-for").write_text("2")
    assert mac.run("uninstall")[0] == 0
    assert [call.split()[0] for call in mac.calls()] == ["print", "bootout", "print", "print", "print"]


def test_user_unit_is_written_enabled_and_started(world: Make, tmp_path: Path) -> None:
    linux = world("linux")
    code, _, err = linux.run("install")
    assert (code, err) == (0, "")
    assert linux.calls() == [
        "--user daemon-reload",
        "--user enable governor.service",
        "--user restart governor.service",
    ]
    unit = (tmp_path / "home/.config/systemd/user/governor.service").read_text()
    assert f'ExecStart=:"{tmp_path}/opt/governor" run\n' in unit
    assert "User=" not in unit


def test_system_unit_is_roots(world: Make, tmp_path: Path) -> None:
    linux = world("linux", system=True)
    assert linux.run("install", "--system", "--user", ME)[0] == 0
    assert linux.calls()[0] == "daemon-reload"
    unit = (tmp_path / "root/etc/systemd/system/governor.service").read_text()
    assert f"\nUser={ME}\n" in unit
    assert "\nGroup=governor-agents\n" in unit


def test_a_failing_systemctl_is_quoted(world: Make) -> None:
    linux = world("linux")
    linux.fail("daemon-reload", 1, "Failed to connect to bus: No medium found")
    code, _, err = linux.run("install")
    assert code == 1
    assert "`systemctl --user daemon-reload` failed: Failed to connect to bus" in err
    linux.fail("show", 1, "")
    assert "it said nothing" in linux.run("status")[2]


@pytest.mark.parametrize("platform", ["darwin", "linux"])
@pytest.mark.parametrize("system", [False, True])
def test_a_dry_run_shows_all_and_does_nothing(
    world: Make, tmp_path: Path, platform: str, system: bool
) -> None:
    here = world(platform)  # not root: looking is free
    flags = ["--system"] if system else []
    before = sorted(tmp_path.rglob("*"))
    code, out, _ = here.run("install", "--dry-run", "--json", *flags)
    plan = json.loads(out)
    assert code == 0
    assert str(tmp_path / "opt/governor") in plan["content"]
    assert plan["act"].startswith(f"write {tmp_path / ('root' if system else 'home')}")
    assert {command[0] for command in plan["commands"]} == {
        {"darwin": "launchctl", "linux": "systemctl"}[platform]
    }
    code, out, _ = here.run("uninstall", "--dry-run", *flags)
    assert code == 0
    assert "would remove" in out
    assert here.calls() == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_shows_the_commands_of_the_real_run(world: Make) -> None:
    mac = world("darwin")
    shown = [" ".join(c[1:]) for c in json.loads(mac.run("install", "--dry-run", "--json")[1])["commands"]]
    mac.run("install")
    mac.calls()
    (mac.machine.user_home / f"Library/LaunchAgents/{AGENT}.plist").write_text("old")
    mac.run("install")
    assert [call for call in mac.calls() if not call.startswith("print")] == shown


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_system_is_for_root_and_root_is_for_system(world: Make, command: str) -> None:
    mac = world("darwin")
    assert "sudo" in mac.run(command, "--system")[2]
    mac.alter(uid=0)
    assert "Add --system" in mac.run(command)[2]
    assert mac.calls() == []


@pytest.mark.parametrize("system", [False, True])
def test_a_home_without_a_governor_is_refused(world: Make, tmp_path: Path, system: bool) -> None:
    mac = world("darwin", system=system)
    home = (
        tmp_path
        / ("root/var/db" if system else "home")
        / ("bridge-governor" if system else ".bridge-governor")
    )
    (home / "governor.toml").unlink()
    code, _, err = mac.run("install", *(["--system", "--user", ME] if system else []))
    assert code == 2
    assert f"No governor lives in {home}" in err
    assert "governor init" in err
    assert mac.calls() == []


def test_a_home_of_somebody_else_is_refused(world: Make) -> None:
    other = next(account.pw_name for account in pwd.getpwall() if account.pw_uid != os.getuid())
    linux = world("linux", system=True)
    code, _, err = linux.run("install", "--system", "--user", other)
    assert code == 2
    assert f"does not belong to {other}" in err


def test_an_unknown_user_is_refused(world: Make) -> None:
    code, _, err = world("linux", system=True).run("install", "--system", "--user", "no-such-user")
    assert code == 2
    assert "There is no user no-such-user" in err


@pytest.mark.parametrize("flag", ["--user", "--group"])
def test_an_account_cannot_smuggle_a_line_in(world: Make, flag: str) -> None:
    linux = world("linux", system=True)
    code, _, err = linux.run("install", "--system", flag, "x\nExecStartPre=/bin/sh", "--dry-run")
    assert code == 2
    assert "no name of a user or group" in err


@pytest.mark.parametrize("spoilt", ["program", "folder above", "package", "link", "owner"])
def test_a_system_service_executes_nothing_that_others_can_change(
    world: Make, tmp_path: Path, spoilt: str
) -> None:
    linux = world("linux", system=True)
    program = linux.machine.program
    culprit = program
    match spoilt:
        case "program":
            program.chmod(0o775)
        case "folder above":
            culprit = program.parent
            culprit.chmod(0o777)
        case "package":
            culprit = tmp_path / "opt/code"
            culprit.chmod(0o775)
        case "link":  # safe at both ends, but the way leads through an open folder
            culprit = folder(tmp_path / "open")
            (culprit / "governor").symlink_to(program)
            link = folder(tmp_path / "safe") / "governor"
            link.symlink_to(culprit / "governor")
            culprit.chmod(0o777)
            linux.alter(program=link, code=(link,))
        case "owner":
            linux.alter(trusted=frozenset({os.getuid() + 1}))
    code, _, err = linux.run("install", "--system", "--user", ME)
    assert code == 2
    assert f"{culprit} can be changed by others than root" in err
    assert linux.calls() == []


def test_the_system_unit_must_be_able_to_see_the_home(world: Make, tmp_path: Path) -> None:
    linux = world("linux", system=True)
    home = tmp_path / "root/home/max/.bridge-governor"
    folder(home)
    (home / "governor.toml").write_text("")
    linux.home = home
    code, _, err = linux.run("install", "--system", "--user", ME)
    assert code == 2
    assert "cannot see" in err


def test_a_missing_program_is_refused(world: Make) -> None:
    mac = world("darwin")
    mac.machine.program.unlink()
    assert "The governor command is not at" in mac.run("install")[2]


def test_a_system_without_a_known_manager_is_told_so(world: Make) -> None:
    here = world("linux")
    here.alter(platform="freebsd15")
    code, out, _ = here.run("install", "--json")
    assert code == 2
    assert "governor run" in json.loads(out)["message"]


def test_a_missing_launchctl_is_told(world: Make, tmp_path: Path) -> None:
    mac = world("darwin")
    mac.alter(run=CommandRunner({"PATH": str(tmp_path / "nothing")}))
    code, _, err = mac.run("status")
    assert code == 1
    assert "launchctl was not found" in err


def test_a_file_that_cannot_be_written_read_or_removed_is_one_clear_error(
    world: Make, tmp_path: Path
) -> None:
    mac = world("darwin")
    (tmp_path / "home/Library").write_text("a file in the way")
    assert f"{tmp_path}/home/Library/LaunchAgents/{AGENT}.plist: Not a directory" in mac.run("install")[2]
    linux = world("linux")
    place = tmp_path / "home/.config/systemd/user/governor.service"
    place.mkdir(parents=True)
    assert f"{place}: Is a directory" in linux.run("uninstall")[2]


def test_a_command_that_hangs_is_given_up() -> None:
    with pytest.raises(GovernorError, match=r"`sleep 60` did not end within 0\.05 s"):
        CommandRunner({"PATH": os.defpath}, seconds=0.05)(("sleep", "60"))


def test_this_machine_is_described() -> None:
    here = Machine.here()
    assert here.uid == os.getuid()
    assert here.program.is_absolute()
    assert here.program.name == "governor"
    assert here.program in here.code
    assert isinstance(here.run, CommandRunner)
    assert here.run.environ["PATH"].startswith("/usr/bin:/bin:")
