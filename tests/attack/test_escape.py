"""P6: a reader that was taken over by its message tries to get out. The kernel and the governor stop it.

Each deed is done by the real child of the real governor, in the place where it would read the message: after
the locks, with everything imported that the deed needs. It ends in one of three ways:

    killed    the kernel ended the process at the call
    refused   the call came back with an error
    escaped   the deed was done

Each is done three times over: behind all locks (killed), behind all but the allow-list of system calls (what
is refused then has a second wall), and without any lock (where it must succeed, or the test proves nothing).
"""

import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from governor.cli.demo_stage import wait_for
from governor.errors import ReadingError
from governor.inbound.reader_process import LOCKS_NEEDED, child_command, read_message
from reader.contract import Job, Kind, Mode, Rewrite, verdict_line
from reader.sandbox.seccomp import ARCHITECTURES

NONCE = "0123456789abcdef"
JOB = Job("Look at a.py.", Mode.VALUES, NONCE)
DONE = Rewrite(Kind.UNREAD, "", (), (), (), ())
DONE_LINE = verdict_line(DONE, NONCE).decode().strip()

X86 = platform.machine() == "x86_64"
NOBODY = 65534
NO_LOCKS: frozenset[str] = frozenset()
WITHIN_S = 60.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the locks are Linux's"),
    pytest.mark.skipif(platform.machine() not in ARCHITECTURES, reason="no table of system calls"),
]


EVERYBODY, USERS, NONE = "everybody", "users", ""


class Deed(NamedTuple):
    """What a taken-over reader does; it escaped if this raises nothing.

    `second_wall`: to whom it is refused behind the other locks, when the allow-list is gone. `always`: whether it
    succeeds without any lock wherever tests run; where not (a container forbids it, it takes root), that half
    is skipped.
    """

    code: str
    second_wall: str = NONE
    always: bool = True


DEEDS: dict[str, Deed] = {
    "open": Deed("os.open('/etc/passwd', os.O_RDONLY)", EVERYBODY),
    "list": Deed("os.listdir('/')", EVERYBODY),
    "stat": Deed("os.stat('/')"),
    "write": Deed("os.open(f'{OPEN}/written', os.O_WRONLY | os.O_CREAT, 0o666)", EVERYBODY),
    "delete": Deed("os.unlink(f'{OPEN}/{sorted(THERE)[0]}')", EVERYBODY),
    "connect tcp": Deed("socket.socket().connect(('127.0.0.1', PORT))", EVERYBODY),
    "send udp": Deed(
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))", EVERYBODY
    ),
    "connect unix": Deed("socket.socket(socket.AF_UNIX).connect(f'{OPEN}/socket')", EVERYBODY),
    "bind": Deed("socket.socket().bind(('127.0.0.1', 0))", EVERYBODY),
    "netlink": Deed("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)", EVERYBODY),
    "exec": Deed("os.execv('/bin/echo', ['echo', DONE_LINE])", EVERYBODY),
    "fork": Deed("os._exit(0) if os.fork() == 0 else None", USERS),
    "thread": Deed("_thread.start_new_thread(time.sleep, (0,))", USERS),
    "ptrace the governor": Deed("call('ptrace', 0x4206, GOVERNOR, 0, 0)", EVERYBODY, always=False),
    "signal the governor": Deed("os.kill(GOVERNOR, signal.SIGURG)", EVERYBODY, always=False),
    "memfd": Deed("os.memfd_create('x')", EVERYBODY),
    "read another descriptor": Deed("os.read(2, 1)"),
    "map code": Deed("mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"),
    "make data code": Deed("call('mprotect', PAGE, 4096, 5)"),
    "keyring": Deed("call('syscall', 250 if X86 else 219, 0, -3, 1)", always=False),
    "user namespace": Deed("call('unshare', 0x10000000)", always=False),
    "io_uring": Deed("call('syscall', 425, 1, bytes(120))", EVERYBODY, always=False),
    "bpf": Deed("call('syscall', 321 if X86 else 280, 0, bytes(72), 72)", EVERYBODY, always=False),
    "chroot": Deed("os.chroot('/')", EVERYBODY, always=False),
    "become another user": Deed("os.setresuid(1, 1, 1)", EVERYBODY, always=False),
    "be dumpable again": Deed("call('prctl', 4, 1, 0, 0, 0)"),
    "catch signals": Deed("signal.signal(signal.SIGPROF, signal.SIG_IGN)"),
    "lift the limit on time": Deed("signal.setitimer(signal.ITIMER_PROF, 0)"),
}
if X86:
    DEEDS["another architecture"] = Deed("INT_80()", always=False)
    DEEDS["x32"] = Deed("call('syscall', 0x40000000 + 39)", EVERYBODY, always=False)

HOSTILE = """
import _thread, ctypes, mmap, os, re, signal, socket, sys, time
import reader.__main__ as child
from reader.contract import Kind, Rewrite
from reader.errors import DroppedError
from reader.sandbox import limits, lock as locks
from reader.sandbox.system_call import system_call as call

PAGE = ctypes.addressof(ctypes.c_char.from_buffer(PAGES := mmap.mmap(-1, 4096)))
if X86:
    CODE = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    CODE.write(bytes.fromhex('b814000000cd80c3'))  # mov eax, 20 (getpid of i386); int 0x80; ret
    INT_80 = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(CODE)))
THERE = os.listdir(OPEN)
if USER is not None:
    os.setgroups([]); os.setresgid(USER, USER, USER); os.setresuid(USER, USER, USER)

def taken_over(job, ask):
    try:
        exec(DEED)
    except (OSError, RuntimeError, MemoryError):
        raise DroppedError('blob') from None
    except BaseException:
        raise DroppedError('markup') from None
    return Rewrite(Kind.UNREAD, '', (), (), (), ())

child.rewrite = taken_over
STEPS = [(name, (lambda: limits.limit(CPU)) if name == 'limits' else take) for name, take in locks.STEPS['linux']]
child.main(GOVERNOR, lock=lambda parent: locks.lock(parent, tuple(step for step in STEPS if step[0] in LOCKS)))
"""


def hostile(
    deed: str,
    locks: frozenset[str],
    user: int | None,
    *,
    cpu: float = 5.0,
    **known: object,
) -> list[str]:
    """Return the command of a real child that does a deed where it would read the message."""
    *start, code = child_command()
    imports, called, _ = code.rpartition("from reader.__main__")
    assert called
    names = {
        "DEED": deed,
        "LOCKS": sorted(locks),
        "USER": user,
        "CPU": cpu,
        "GOVERNOR": os.getpid(),
        "X86": X86,
        "DONE_LINE": DONE_LINE,
        "OPEN": "/",
        "PORT": 0,
        **known,
    }
    return [
        *start,
        imports + "\n" + "\n".join(f"{name} = {value!r}" for name, value in names.items()) + HOSTILE,
    ]


async def end_of(command: list[str], locks: frozenset[str], deadline: float = 60.0) -> str:
    """Return how a deed ended: `escaped`, `refused`, `killed`, or the code of another drop."""
    try:
        read = await read_message(
            JOB, None, command=command, locks=locks & LOCKS_NEEDED, deadline=timedelta(seconds=deadline)
        )
    except ReadingError as error:
        return {"blob": "refused", "child_died": "killed"}.get(error.drop, error.drop)
    assert read == DONE
    return "escaped"


@pytest.fixture(params=["as who runs this", "as nobody"])
def user(request: pytest.FixtureRequest) -> int | None:
    """Whose process the child is: of whoever runs the tests (in a container, root), or of an ordinary user."""
    if request.param == "as who runs this":
        return None
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else; the other half runs as an ordinary user already")
    return NOBODY


class World(NamedTuple):
    """What there is to reach: a folder open to all, with a socket in it, and a port."""

    folder: Path
    tcp: socket.socket

    @property
    def names(self) -> dict[str, object]:
        return {"OPEN": str(self.folder), "PORT": self.tcp.getsockname()[1]}


@pytest.fixture
def world() -> Iterator[World]:
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        Path(folder).chmod(0o777)
        Path(folder, "file").touch()
        unix.bind(f"{folder}/socket")
        unix.listen()
        Path(folder, "socket").chmod(0o777)
        yield World(Path(folder), tcp)


@pytest.mark.parametrize("name", DEEDS)
async def test_behind_all_locks_the_kernel_ends_it(name: str, user: int | None, world: World) -> None:
    before = sorted(world.folder.iterdir())
    assert (
        await end_of(hostile(DEEDS[name].code, LOCKS_NEEDED, user, **world.names), LOCKS_NEEDED) == "killed"
    )
    assert sorted(world.folder.iterdir()) == before
    world.tcp.setblocking(False)
    with pytest.raises(BlockingIOError):
        world.tcp.accept()


@pytest.mark.parametrize("name", [name for name, deed in DEEDS.items() if deed.second_wall])
async def test_most_deeds_meet_a_second_wall(name: str, user: int | None, world: World) -> None:
    if DEEDS[name].second_wall == USERS and user is None and os.geteuid() == 0:
        pytest.skip("the limit on processes does not bind root")
    less = LOCKS_NEEDED - {"seccomp"}
    assert await end_of(hostile(DEEDS[name].code, less, user, **world.names), less) == "refused"


@pytest.mark.parametrize("name", DEEDS)
async def test_without_locks_it_would_have_been_done(name: str, user: int | None, world: World) -> None:
    ended = await end_of(hostile(DEEDS[name].code, NO_LOCKS, user, **world.names), NO_LOCKS)
    if ended == "refused" and not DEEDS[name].always:
        pytest.skip("not to be done here without locks either")
    assert ended == "escaped"


# what uses up instead of reaching out


async def test_it_takes_no_more_memory_than_its_limit(user: int | None) -> None:
    two_gigabytes = "bytearray(2 << 30)"
    assert await end_of(hostile(two_gigabytes, LOCKS_NEEDED, user), LOCKS_NEEDED) == "refused"
    less = LOCKS_NEEDED - {"limits"}
    assert await end_of(hostile(two_gigabytes, less, user), less) == "escaped"


@pytest.mark.parametrize("deed", ["while True: pass", "re.match('(a+)+$', 'a' * 64 + 'b')"])
async def test_it_computes_no_longer_than_its_limit(deed: str, user: int | None) -> None:
    assert await end_of(hostile(deed, LOCKS_NEEDED, user, cpu=0.2), LOCKS_NEEDED) == "killed"
    less = LOCKS_NEEDED - {"limits"}
    assert await end_of(hostile(deed, less, user, cpu=0.2), less, deadline=3) == "timeout"


async def test_it_waits_no_longer_than_the_deadline(user: int | None) -> None:
    assert await end_of(hostile("os.read(0, 1)", LOCKS_NEEDED, user), LOCKS_NEEDED, deadline=2) == "timeout"


async def test_it_says_no_more_than_a_line(user: int | None) -> None:
    hundred_megabytes = "for _ in range(1600): os.write(1, b'x' * 65536)"
    assert await end_of(hostile(hundred_megabytes, LOCKS_NEEDED, user), LOCKS_NEEDED) == "flood"


# the end of the governor

GOVERNOR = """
import asyncio, sys
sys.path[:0] = {paths!r}
from tests.attack import test_escape as escape
locks = frozenset({locks!r})
asyncio.run(escape.end_of(escape.hostile("while True: os.write(2, b'x')", locks, {user!r}, cpu=60), locks))
"""


def killed_governors_child(locks: frozenset[str], user: int | None) -> int:
    """Start a governor of sorts, wait for its reader to be at work, kill it, return the reader's pid."""
    code = GOVERNOR.format(paths=sys.path, locks=sorted(locks), user=user)
    governor = subprocess.Popen([sys.executable, "-c", code])
    try:
        children = Path(f"/proc/{governor.pid}/task/{governor.pid}/children")
        assert wait_for(
            lambda: any(worked_for(int(pid)) > 1 for pid in children.read_text().split()), WITHIN_S
        )
        [pid] = children.read_text().split()
    finally:
        governor.kill()
        governor.wait()
    return int(pid)


def worked_for(pid: int) -> float:
    """Return how much processor time a process has used, in seconds (fields 14 and 15 of proc(5))."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, collected or not."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_it_does_not_outlive_the_governor(user: int | None) -> None:
    pid = killed_governors_child(LOCKS_NEEDED, user)
    assert wait_for(lambda: is_gone(pid), WITHIN_S)


def test_without_that_lock_it_would(user: int | None) -> None:
    pid = killed_governors_child(LOCKS_NEEDED - {"parent_death"}, user)
    worked = worked_for(pid)
    try:
        assert wait_for(lambda: worked_for(pid) > worked + 1, WITHIN_S)
    finally:
        os.kill(pid, signal.SIGKILL)
