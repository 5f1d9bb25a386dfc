"""Try cross-memory attach between two sibling processes, as two ranks would, and print what happened.

Run as a program of its own (standard library only, started with -I -S): forking is safe here, while it
is not inside an interface with threads. One line of JSON is printed:

    {"plain": 0, "permitted": 0, "kcmp": 0}

Each value is 0 when it worked, an errno when it was refused, -1 when the bytes were wrong, and null
when it could not be tried. `plain` is process_vm_readv as it is, `permitted` after the target gave
leave to all, prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY), as ranks of Open MPI do. `kcmp` is the system call by
which Open MPI 5 asks whether two processes share a user namespace; containers often refuse it.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform

PATTERN = b"mpiwizard reads the memory of a sibling process. " * 100
PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
PR_SET_PTRACER_ANY = -1
KCMP_VM = 1  # linux/kcmp.h
KCMP_NUMBERS = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354}  # the kernel's syscall tables


class _IoVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def read_from(pid: int, address: int) -> int:
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
    number = KCMP_NUMBERS.get(platform.machine())
    if number is None:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    arguments = [ctypes.c_long(value) for value in (number, os.getpid(), pid, KCMP_VM, 0, 0)]
    return ctypes.get_errno() if library.syscall(*arguments) < 0 else 0


def _target(orders: int, answers: int) -> None:
    """Hold the pattern; tell its address, then allow everybody to read when the order comes."""
    buffer = ctypes.create_string_buffer(PATTERN, len(PATTERN))
    os.write(answers, f"{ctypes.addressof(buffer)}\n".encode())
    if os.read(orders, 1):
        ctypes.CDLL(None).prctl(
            ctypes.c_int(PR_SET_PTRACER), ctypes.c_ulong(PR_SET_PTRACER_ANY), *(ctypes.c_ulong(0),) * 3
        )
        os.write(answers, b"permitted\n")
        os.read(orders, 1)  # stays until the pipe is closed


def _reader(pid: int, address: int, orders: int, answers: int) -> dict[str, int | None]:
    """What the reading sibling sees, before and after it was permitted."""
    plain = read_from(pid, address)
    os.write(orders, b"p")
    os.read(answers, 64)
    return {"plain": plain, "permitted": read_from(pid, address), "kcmp": compare_with(pid)}


def main() -> None:
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()
    target = os.fork()
    if target == 0:
        os.close(orders_in)
        _target(orders_out, answers_in)
        os._exit(0)
    address = int(os.read(answers_out, 64))
    reader = os.fork()
    if reader == 0:
        print(json.dumps(_reader(target, address, orders_in, answers_out)), flush=True)
        os._exit(0)
    os.waitpid(reader, 0)
    os.close(orders_in)
    os.waitpid(target, 0)


if __name__ == "__main__":
    main()
