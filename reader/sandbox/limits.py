"""How much a reader may use: setrlimit(2), and a timer for its processor time."""

import resource
import signal
import sys
from collections.abc import Callable
from math import ceil

CPU_SECONDS = 5.0
"""A read takes hundredths of a second; a pattern that runs away is ended here."""

MEMORY_BYTES = 128 * 1024 * 1024

NOTHING: tuple[int, ...] = (
    resource.RLIMIT_CORE,
    resource.RLIMIT_FSIZE,  # no file can grow; pipes are none
    resource.RLIMIT_NPROC,  # no fork, except as root
    resource.RLIMIT_NOFILE,  # nothing more can be opened: no file, no socket, no import
)

_NOT_ENFORCED = {"darwin": {resource.RLIMIT_AS}}
"""macOS refuses to lower it."""

_GetLimit = Callable[[int], tuple[int, int]]
_SetLimit = Callable[[int, tuple[int, int]], None]
_SetTimer = Callable[[int, float], object]


def limit(
    cpu_seconds: float = CPU_SECONDS,
    *,
    platform: str = sys.platform,
    limit_of: _GetLimit = resource.getrlimit,
    set_limit: _SetLimit = resource.setrlimit,
    set_timer: _SetTimer = signal.setitimer,
) -> None:
    """Set the limits; where the system set a lower one, that one stays. Raises OSError or ValueError.

    The timer counts user and kernel time and kills by SIGPROF: finer than RLIMIT_CPU, which knows
    whole seconds, and as final once no handler can be set.
    """
    set_timer(signal.ITIMER_PROF, cpu_seconds)
    most = {
        resource.RLIMIT_CPU: ceil(cpu_seconds) + 1,
        resource.RLIMIT_AS: MEMORY_BYTES,
        **dict.fromkeys(NOTHING, 0),
    }
    for which in most.keys() - _NOT_ENFORCED.get(platform, set()):
        hard = limit_of(which)[1]
        bound = most[which] if hard == resource.RLIM_INFINITY else min(most[which], hard)
        set_limit(which, (bound, bound))
