"""The service files: their keys and types, what they may hold, and that every install carries them."""

import os
import plistlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from governor.cli.service import GROUP, PLACES
from governor.cli.service_template import Service, read_template, render_plist, render_unit
from governor.errors import LocalError

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PLISTS = sorted((DEPLOY / "launchd").iterdir())
UNITS = sorted((DEPLOY / "systemd").iterdir())
PLAIN = Service(Path("/usr/bin/true"), Path("/var/lib/bridge-governor"), "daemon", "daemon")
AWKWARD = Service(
    Path("/opt/my tools/100% <x> & $HOME é/governor"), Path("/var/lib/bridge governor"), "_gov", "g"
)

# launchd.plist(5), macOS 15: every key that a job file may have at its top, with its type.
STRINGS, BOOLS, INTS = dict[str, str], dict[str, bool], dict[str, int]
LAUNCHD_KEYS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        (
            *("Label", "UserName", "GroupName", "Program", "BundleProgram", "RootDirectory"),
            *("WorkingDirectory", "StandardInPath", "StandardOutPath", "StandardErrorPath", "ProcessType"),
        ),
        (str,),
    ),
    **dict.fromkeys(
        (
            *("Disabled", "EnableGlobbing", "EnableTransactions", "EnablePressuredExit", "OnDemand"),
            *("RunAtLoad", "InitGroups", "StartOnMount", "Debug", "WaitForDebugger", "AbandonProcessGroup"),
            *("LowPriorityIO", "LowPriorityBackgroundIO", "MaterializeDatalessFiles", "LaunchOnlyOnce"),
            *("SessionCreate", "LegacyTimers", "ServiceIPC"),
        ),
        (bool,),
    ),
    **dict.fromkeys(("TimeOut", "ExitTimeOut", "ThrottleInterval", "StartInterval", "Nice"), (int,)),
    **dict.fromkeys(("ProgramArguments", "WatchPaths", "QueueDirectories", "LimitLoadToHosts"), (list[str],)),
    "LimitLoadFromHosts": (list[str],),
    "LimitLoadToSessionType": (str, list[str]),
    "AssociatedBundleIdentifiers": (str, list[str]),
    "Umask": (int, str),
    "KeepAlive": (bool, BOOLS),
    "EnvironmentVariables": (STRINGS,),
    "SoftResourceLimits": (INTS,),
    "HardResourceLimits": (INTS,),
    "inetdCompatibility": (BOOLS,),
}
KEEP_ALIVE = {"SuccessfulExit", "Crashed", "NetworkState"}
LIMITS = {"Core", "CPU", "Data", "FileSize", "MemoryLock", "NumberOfFiles", "NumberOfProcesses"}
LIMITS |= {"ResidentSetSize", "Stack"}
PROCESS_TYPES = {"Background", "Standard", "Adaptive", "Interactive"}
SECRET = re.compile(r"token|secret|key|password|credential", re.IGNORECASE)


def is_a(value: object, kind: Any) -> bool:  # noqa: ANN401 - a type or a generic alias
    """Tell whether a parsed value has the type; a plist's bool is no integer."""
    arguments = getattr(kind, "__args__", ())
    if not arguments:
        return type(value) is kind
    if kind.__origin__ is list:
        return type(value) is list and all(type(part) is arguments[0] for part in value)
    return type(value) is dict and all(type(part) is arguments[1] for part in value.values())


def settings(text: str) -> list[tuple[str, str, str]]:
    """Return a unit's settings as (section, key, value), in order; repeated keys count."""
    section, found = "", []
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals, line
            found.append((section, key, value))
    return found


def rendered(path: Path, service: Service) -> str:
    return render_unit(path.read_text(), service)


def test_every_place_has_its_template_and_every_template_its_place() -> None:
    files = {str(path.relative_to(DEPLOY)) for path in (*PLISTS, *UNITS)}
    assert {place.template for place in PLACES.values()} == files
    for name in files:
        assert read_template(name) == (DEPLOY / name).read_text()


@pytest.mark.parametrize("path", PLISTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("service", [PLAIN, AWKWARD])
def test_a_plist_has_known_keys_of_the_right_type(path: Path, service: Service) -> None:
    job = plistlib.loads(render_plist(path.read_text(), service))
    for key, value in job.items():
        assert any(is_a(value, kind) for kind in LAUNCHD_KEYS[key]), key
    assert set(job["KeepAlive"]) <= KEEP_ALIVE
    assert set(job["SoftResourceLimits"]) <= LIMITS
    assert job["ProcessType"] in PROCESS_TYPES
    assert job["Label"] == path.stem


@pytest.mark.parametrize("path", PLISTS, ids=lambda path: path.stem)
def test_a_plist_says_what_it_must(path: Path) -> None:
    job = plistlib.loads(render_plist(path.read_text(), AWKWARD))
    assert job["ProgramArguments"] == [str(AWKWARD.program), "run"]
    assert Path(job["ProgramArguments"][0]).is_absolute()
    assert job["Umask"] == 63  # 0o077
    assert job["RunAtLoad"] is True
    assert job["KeepAlive"] == {"SuccessfulExit": False}
    assert job["ThrottleInterval"] >= 10
    assert job["ProcessType"] == "Interactive"
    assert {job["StandardOutPath"], job["StandardErrorPath"]} == {f"{AWKWARD.home}/service.log"}
    assert "@" not in repr(job)


@pytest.mark.parametrize("path", PLISTS, ids=lambda path: path.stem)
def test_a_plist_holds_no_secret(path: Path) -> None:
    job = plistlib.loads(path.read_bytes())
    assert job["EnvironmentVariables"] == {"GOVERNOR_HOME": "@HOME@"}
    assert not SECRET.search(repr(job))


def test_only_the_daemon_changes_its_user() -> None:
    agent, daemon = (plistlib.loads(path.read_bytes()) for path in PLISTS)
    assert agent["Label"].endswith(".agent")
    assert not {"UserName", "GroupName", "SessionCreate"} & set(agent)
    assert (daemon["UserName"], daemon["GroupName"]) == ("@USER@", "@GROUP@")
    assert {k: v for k, v in daemon.items() if k not in {"UserName", "GroupName", "Label"}} == {
        k: v for k, v in agent.items() if k != "Label"
    }


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_the_governor_with_no_rights_to_gain(path: Path) -> None:
    unit = settings(rendered(path, PLAIN))
    service = {key: value for section, key, value in unit if section == "Service"}
    assert service["ExecStart"] == ':"/usr/bin/true" run'
    assert service["Type"] == "exec"
    assert service["UMask"] == "0077"
    assert service["Restart"] == "on-failure"
    assert service["NoNewPrivileges"] == "yes"
    environment = [value for _, key, value in unit if key.startswith(("Environment", "PassEnv", "LoadCred"))]
    assert environment == ['"GOVERNOR_HOME=/var/lib/bridge-governor"']
    assert not SECRET.search(" ".join(value for _, _, value in unit))


def test_the_system_unit_sees_the_uid_of_an_agent_at_the_socket() -> None:
    service = {key: value for _, key, value in settings((DEPLOY / "systemd/governor.service").read_text())}
    assert "PrivateUsers" not in service
    assert (service["User"], service["Group"]) == ("@USER@", "@GROUP@")
    assert (service["RuntimeDirectory"], service["RuntimeDirectoryMode"]) == ("bridge-governor", "0750")
    assert "AF_UNIX" in service["RestrictAddressFamilies"]


def test_awkward_paths_are_escaped_in_a_unit() -> None:
    unit = {key: value for _, key, value in settings(rendered(UNITS[1], AWKWARD))}
    assert unit["ExecStart"] == ':"/opt/my tools/100%% <x> & $HOME é/governor" run'
    assert unit["ReadWritePaths"] == '"/var/lib/bridge governor"'
    assert (unit["User"], unit["Group"]) == ("_gov", "g")


@pytest.mark.parametrize("bad", ["relative/governor", "/a\nExecStartPre=/bin/sh", "/a\0b", "/a\udcff"])
def test_a_path_that_cannot_stand_in_a_file_is_refused(bad: str) -> None:
    for service in (Service(Path(bad), PLAIN.home, "u", "g"), Service(PLAIN.program, Path(bad), "u", "g")):
        with pytest.raises(LocalError, match="absolute path without control characters"):
            render_plist(PLISTS[0].read_text(), service)
        with pytest.raises(LocalError, match="absolute path without control characters"):
            render_unit(UNITS[0].read_text(), service)


@pytest.mark.parametrize("bad", ['/a"b', "/a'b", "/a\\b"])
def test_a_path_that_systemd_does_not_take_is_refused(bad: str) -> None:
    with pytest.raises(LocalError, match="no quotes or backslashes"):
        rendered(UNITS[0], Service(Path(bad), PLAIN.home))
    assert plistlib.loads(render_plist(PLISTS[0].read_text(), Service(Path(bad), PLAIN.home)))


def test_a_value_is_never_filled_in_twice() -> None:
    service = Service(Path("/opt/@HOME@/governor"), PLAIN.home, "u", "g")
    assert (
        plistlib.loads(render_plist(PLISTS[0].read_text(), service))["ProgramArguments"][0]
        == "/opt/@HOME@/governor"
    )
    assert 'ExecStart=:"/opt/@HOME@/governor" run' in rendered(UNITS[1], service)


needs_analyze = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed on this machine"
)


def analyze(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(shutil.which("systemd-analyze")), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning", "XDG_RUNTIME_DIR": "/run"},
    )


@needs_analyze
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
@pytest.mark.parametrize("folder", ["plain", "my tools 100% $HOME é"])
def test_systemd_itself_accepts_a_unit(path: Path, folder: str, tmp_path: Path) -> None:
    program = tmp_path / folder / "governor"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "governor.service"
    unit.write_text(rendered(path, Service(program, tmp_path / folder, "daemon", "daemon")))
    done = analyze(*(["--user"] if "user" in path.stem else []), "verify", str(unit))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_analyze
def test_the_system_unit_is_exposed_to_little(tmp_path: Path) -> None:
    unit = tmp_path / "governor.service"
    unit.write_text(rendered(DEPLOY / "systemd/governor.service", PLAIN))
    done = analyze("security", "--offline=true", "--threshold=20", "--no-pager", str(unit))
    assert done.returncode == 0, done.stdout[-300:]


def calls_in(group: str) -> set[str]:
    """Return the system calls of a group such as @system-service, its sub-groups followed."""
    lines = [line.strip() for line in analyze("syscall-filter", group).stdout.splitlines()[1:]]
    names = [line for line in lines if line and not line.startswith("#")]
    return set().union(*(calls_in(name) if name.startswith("@") else {name} for name in names))


@needs_analyze
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_the_filter_lets_the_reader_lock_itself_and_little_else(path: Path) -> None:
    allowed: set[str] = set()
    for _, key, value in settings(path.read_text()):
        if key == "SystemCallFilter":
            words = value.removeprefix("~").split()
            named = set().union(*(calls_in(word) if word.startswith("@") else {word} for word in words))
            allowed = allowed - named if value.startswith("~") else allowed | named
    needed = {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "prctl"}
    needed |= {"prlimit64", "setitimer", "execve", "clone", "clone3", "pidfd_open", "setsid", "kill", "wait4"}
    assert needed <= allowed
    assert not allowed & {
        "ptrace",
        "mount",
        "bpf",
        "init_module",
        "setuid",
        "setresuid",
        "reboot",
        "chroot",
    }


def test_the_wheel_carries_the_templates_and_reads_its_own(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    for path in (*PLISTS, *UNITS):
        carried = tmp_path / "site/governor/cli/templates" / path.relative_to(DEPLOY)
        assert carried.read_bytes() == path.read_bytes()
        carried.write_text("from the wheel")
    for path in (ROOT / "skills/send-to-eva").rglob("*.*"):
        assert (
            tmp_path / "site/governor/cli/templates/skill" / path.relative_to(ROOT / "skills/send-to-eva")
        ).exists()
    read = subprocess.run(
        [
            sys.executable,
            "-c",
            "from governor.cli.service_template import read_template as r; print(r('systemd/governor.service'))",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert read.stdout == "from the wheel\n"


def test_the_guide_names_every_template_field_and_default() -> None:
    guide = (DEPLOY / "README.md").read_text()
    fields = set().union(*(re.findall(r"@[A-Z]+@", path.read_text()) for path in (*PLISTS, *UNITS)))
    defaults = {f"/{place.home}" for (_, system), place in PLACES.items() if system}
    users = {str(place.user) for (_, system), place in PLACES.items() if system}
    for word in (
        *fields,
        *defaults,
        *users,
        *(str(path.relative_to(DEPLOY)) for path in (*PLISTS, *UNITS)),
        GROUP,
    ):
        assert word in guide
