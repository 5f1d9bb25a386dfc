"""Try cross-memory attach between two sibling processes, as two ranks would, and print what happened.

Run as a program of its own (standard library only, started with -I -S): forking is safe here, while it
is not inside an interface with threads. One line of JSON is printed:

    {"plain": 0, "permitted": 0, "kcmp": 0}

Each value is 0 when it worked, an errno when it was refused, -1 when the bytes were wrong, another
negative number when that signal ended the process that tried (a filter of system calls may do so), and
null when it could not be tried or did not end in time. `plain` is process_vm_readv as it is, `permitted`
after the target gave leave to all, prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY), as ranks of Open MPI do.
`kcmp` is the system call by which Open MPI 5 asks whether it may read a peer; containers often refuse it.

Every process here has a deadline of its own, and none outlives the one that started it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Callable

PATIENCE = 0.4  # seconds that one trial may take; three of them are less than a probe's patience
PATTERN = b"mpiwizard reads the memory of a sibling process. " * 100
PR_SET_PDEATHSIG = 1  # linux/prctl.h, as the next two
PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = -1
KCMP_VM = 1  # linux/kcmp.h
KCMP_NUMBERS = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354}  # the kernel's syscall tables
_WRONG, _NOT_TRIED = 255, 254  # exit statuses of a trial beside errnos, which are smaller


class _IoVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def read_from(pid: int, address: int) -> int | None:
    """Read the pattern from another process: 0, an errno, or -1 for wrong bytes."""
    library = ctypes.CDLL(None, use_errno=True)
    call = library.process_vm_readv
    call.restype = ctypes.c_ssize_t
    buffer = ctypes.create_string_buffer(len(PATTERN))
    here = _IoVector(ctypes.addressof(buffer), len(PATTERN))
    there = _IoVector(address, len(PATTERN))
    arguments = (ctypes.byref(here), ctypes.c_ulong(1), ctypes.byref(there), ctypes.c_ulong(1), ctypes.c_ulong(0))
    count = call(ctypes.c_int(pid), *arguments)
    if count < 0:
        return ctypes.get_errno()
    return 0 if buffer.raw == PATTERN else -1


def compare_with(pid: int) -> int | None:
    """Whether kcmp may be used on another process: 0, an errno, or None where its number is not known."""
    number = KCMP_NUMBERS.get(os.uname().machine)
    if number is None or ctypes.sizeof(ctypes.c_void_p) != 8:  # a 32-bit program has other numbers
        return None
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    arguments = [ctypes.c_long(value) for value in (number, os.getpid(), pid, KCMP_VM, 0, 0)]
    return ctypes.get_errno() if library.syscall(*arguments) < 0 else 0


def _control(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(ctypes.c_int(option), ctypes.c_ulong(value), *(ctypes.c_ulong(0),) * 3)


def _child(work: Callable[[], int | None], patience: float) -> int:
    """Start a process that does this work and exits with its result; it ends with us, and by itself in time."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = _NOT_TRIED
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, patience)
        _control(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:  # else it had died before the line above
            result = work()
            status = _NOT_TRIED if result is None else result & 0xFF
    finally:
        os._exit(status)  # also after an exception, which must not go on as a second parent


def _tried(work: Callable[[], int | None]) -> int | None:
    """What a child of its own found out."""
    status = os.waitstatus_to_exitcode(os.waitpid(_child(work, PATIENCE), 0)[1])
    if status in (_NOT_TRIED, -signal.SIGALRM):
        return None
    return -1 if status == _WRONG else status


def _target(orders: int, answers: int) -> int:
    """Hold the pattern; tell its address, then allow everybody to read when the order comes."""
    buffer = ctypes.create_string_buffer(PATTERN, len(PATTERN))
    os.write(answers, f"{ctypes.addressof(buffer)}\n".encode())
    if os.read(orders, 1):
        _control(PR_SET_PTRACER, PR_SET_PTRACER_ANY)
        os.write(answers, b"permitted\n")
        os.read(orders, 1)  # stays until the pipe is closed
    return 0


def main() -> None:
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()

    def hold() -> int:
        os.close(orders_in)
        return _target(orders_out, answers_in)

    target = _child(hold, 4 * PATIENCE)
    os.close(answers_in)  # so that the target's death ends our waiting for its answer
    address = int(os.read(answers_out, 64))
    plain = _tried(lambda: read_from(target, address))
    os.write(orders_in, b"p")
    os.read(answers_out, 64)
    permitted = _tried(lambda: read_from(target, address))
    kcmp = _tried(lambda: compare_with(target))
    os.close(orders_in)
    os.waitpid(target, 0)
    print(json.dumps({"plain": plain, "permitted": permitted, "kcmp": kcmp}), flush=True)


if __name__ == "__main__":
    main()
