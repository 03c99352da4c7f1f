"""seccomp: system calls that change something outside, and that Landlock lets through, fail.

A filter is a program of the kernel's packet filter over the number and the arguments of a call
(https://docs.kernel.org/userspace-api/seccomp_filter.html); it cannot read memory that an argument
points to. So sockets come from `socketpair` alone, and without datagrams, which may name another
receiver.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Mapping, Sequence

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALL = 0xFFFFFFFF
_X32 = 0x40000000
"""Where calls of the x32 ABI begin, which are the same calls by other numbers."""

_SECCOMP, _FILTER = 22, 2  # of prctl

_ATTRIBUTES = """
    chmod fchmod fchmodat fchmodat2 chown fchown fchownat lchown utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat
    file_setattr
"""
_SOCKETS = "socket connect bind listen accept accept4"
_PROCESSES = """
    ptrace process_vm_writev pidfd_getfd perf_event_open sched_setaffinity sched_setscheduler
    sched_setparam sched_setattr setpriority ioprio_set prlimit64 migrate_pages move_pages
    process_madvise
"""
"""Some of them may be about this process: see `_OWN`."""
_SIGNALS = """
    kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal
"""
_SYSTEM = """
    mount umount2 move_mount open_tree fsopen fspick fsconfig mount_setattr pivot_root chroot
    unshare setns syslog reboot sethostname setdomainname settimeofday clock_settime
    clock_adjtime adjtimex swapon swapoff init_module finit_module delete_module kexec_load
    kexec_file_load quotactl quotactl_fd acct bpf fanotify_init open_by_handle_at keyctl add_key
    request_key vhangup iopl ioperm mq_open mq_unlink msgget msgsnd msgrcv msgctl semget semop
    semtimedop semctl shmget shmat shmctl
"""
_BYPASSES = "io_uring_setup io_uring_enter io_uring_register userfaultfd"
"""Ways around this filter; they are said not to exist, as in older kernels."""

_CONTROLS = (*b"frvnoX", 0x89, 0x8B, 0x94, 0xBC, 0xF5)
"""Kinds of `ioctl` that change files, whole file systems or network interfaces, by a descriptor
that can only read or a socket of any kind: see ioctl-number.rst of the kernel."""
_OF_TERMINALS = ord("T")
_HARMLESS = (0x5401, 0x802C542A, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Of terminals: to get attributes, group, size and what is there to read, and to set what belongs
to the descriptor itself."""
_RECEIVERS = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX of `fcntl`: who gets which signal when there is something."""

_OWN = frozenset(
    {"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "prlimit64"}
    | {"migrate_pages", "move_pages"}
)
"""Calls whose first argument names a process: 0 is oneself."""

_X86_64 = {
    "open": 2, "ioctl": 16, "fcntl": 72,
    "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "bind": 49, "listen": 50,
    "socketpair": 53, "shmget": 29, "shmat": 30, "shmctl": 31, "kill": 62, "semget": 64,
    "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "semtimedop": 220, "migrate_pages": 256, "move_pages": 279, "truncate": 76,
    "creat": 85, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101,
    "syslog": 103, "rt_sigqueueinfo": 129, "utime": 132, "setpriority": 141,
    "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "pivot_root": 155,
    "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171,
    "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203, "clock_settime": 227,
    "tgkill": 234, "utimes": 235, "mq_open": 240, "mq_unlink": 241, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251,
    "openat": 257, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272,
    "utimensat": 280, "accept4": 288, "rt_tgsigqueueinfo": 297,
    "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_writev": 311, "finit_module": 313,
    "sched_setattr": 314, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
"""From `asm/unistd_64.h`."""

_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "fcntl": 25, "ioctl": 29,
    "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41,
    "truncate": 45, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55,
    "openat": 56, "vhangup": 58, "quotactl": 60, "utimensat": 88, "acct": 89, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
    "syslog": 116, "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119,
    "sched_setaffinity": 122, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138,
    "setpriority": 140, "reboot": 142, "sethostname": 161, "setdomainname": 162,
    "settimeofday": 170, "adjtimex": 171, "mq_open": 180, "mq_unlink": 181, "msgget": 186,
    "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semtimedop": 192,
    "migrate_pages": 238, "move_pages": 239,
    "semget": 190, "semctl": 191, "semop": 193, "shmget": 194, "shmctl": 195,
    "shmat": 196, "socket": 198, "socketpair": 199, "bind": 200, "listen": 201,
    "accept": 202, "connect": 203, "sendto": 206, "add_key": 217, "request_key": 218,
    "keyctl": 219, "swapon": 224, "swapoff": 225,
    "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "accept4": 242, "prlimit64": 261,
    "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
    "process_vm_writev": 271, "finit_module": 273, "sched_setattr": 274, "bpf": 280,
    "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
"""From `asm-generic/unistd.h`."""

_SAME = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fspick": 433, "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "fchmodat2": 452, "setxattrat": 463,
    "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
"""The newer ones, of all architectures."""

_MACHINES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, {**_X86_64, **_SAME}),
    "aarch64": (0xC00000B7, {**_AARCH64, **_SAME}),
}

_Instruction = tuple[int, int, int, int]
"""Its code, how far it jumps if it is true and if not, and its constant."""


def is_available() -> bool:
    """Return whether filters for this machine are known; Linux has had them since 3.5."""
    return os.uname().machine in _MACHINES


def numbers() -> Mapping[str, int]:
    """Return the numbers of the calls that are refused on this machine, some only in part."""
    return _MACHINES[os.uname().machine][1]


def confine(*, signals: bool, truncating: bool, terminals: bool) -> None:
    """Let calls fail that change something outside, for good.

    Args:
        signals: whether signals to others fail, also to processes that this one starts.
        truncating: whether files are truncated by nothing but what opens them for writing.
        terminals: whether terminals keep their attributes and size, and get no input.

    Raises:
        OSError: the kernel refuses.
    """
    program = [*_program(signals=signals, truncating=truncating, terminals=terminals)]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    # Kept in a variable until the call: the kernel gets its address alone.
    held = ctypes.create_string_buffer(code)
    # `struct sock_fprog`, with the padding of C.
    loaded = struct.pack("@HP", len(program), ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SECCOMP, _FILTER, loaded, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _program(*, signals: bool, truncating: bool, terminals: bool) -> Iterator[_Instruction]:
    architecture, numbers = _MACHINES[os.uname().machine]
    yield _LOAD, 0, 0, _ARCHITECTURE
    # Calls of another architecture, as of 32 bits, have other numbers.
    yield _EQUAL, 1, 0, architecture
    yield _error(errno.EPERM)
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _X32
    yield _error(errno.EPERM)
    refused = (_ATTRIBUTES + _SYSTEM + _PROCESSES).split()
    for name in refused:
        if name in numbers:
            yield from _for(numbers[name], _if_own(name), errno.EPERM)
    for name in _SOCKETS.split():
        yield from _for(numbers[name], (), errno.EACCES)
    for name in _BYPASSES.split():
        yield from _for(numbers[name], (), errno.ENOSYS)
    yield from _for(numbers["sendto"], _if_null(4), errno.EACCES)
    # Streams and packets in sequence.
    yield from _for(
        numbers["socketpair"], [*_if_equal(1, 1, 0xF), *_if_equal(1, 5, 0xF)], errno.EACCES
    )
    harmless = [each for number in _HARMLESS for each in _if_equal(1, number)]
    kinds = [kind << 8 for kind in (*_CONTROLS, *([_OF_TERMINALS] if terminals else []))]
    # As where a file cannot be cloned, which programs do without.
    unless = [*harmless, *_unless_one_of(1, kinds, 0xFF00)]
    yield from _for(numbers["ioctl"], unless, errno.EOPNOTSUPP)
    if signals:
        yield from _for(numbers["fcntl"], _unless_one_of(1, _RECEIVERS), errno.EPERM)
        for name in _SIGNALS.split():
            # One ends oneself by them, as `abort` does.
            own_signal = () if name == "pidfd_send_signal" else _if_equal(0, os.getpid())
            yield from _for(numbers[name], own_signal, errno.EPERM)
    if truncating:
        yield from _for(numbers["truncate"], (), errno.EACCES)
        yield from _for(numbers["openat2"], (), errno.ENOSYS)  # the C library asks again by openat
        for name, flags in (("open", 1), ("openat", 2)):
            if name in numbers:
                read_to_truncate = _unless_one_of(
                    flags, [os.O_RDONLY | os.O_TRUNC], os.O_ACCMODE | os.O_TRUNC
                )
                yield from _for(numbers[name], read_to_truncate, errno.EACCES)
    yield _RETURN, 0, 0, _ALLOW


def _for(number: int, unless: Sequence[_Instruction], error: int) -> Iterator[_Instruction]:
    """Yield a call's part: it fails, unless these instructions return first."""
    yield _LOAD, 0, 0, _NUMBER
    yield _EQUAL, 0, len(unless) + 1, number
    yield from unless
    yield _error(error)


def _if_own(name: str) -> list[_Instruction]:
    """Allow a call if it is about this process itself."""
    own = _if_equal(1 if name == "setpriority" else 0, 0)
    if name == "setpriority":  # whose first argument says whether the second is a process
        return [(_LOAD, 0, 0, _ARGUMENTS), (_EQUAL, 0, len(own), 0), *own]
    return own if name in _OWN else []


def _if_null(argument: int) -> list[_Instruction]:
    """Allow a call if an argument is no pointer, by both of its halves."""
    low = _if_equal(argument, 0)
    return [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4), (_EQUAL, 0, len(low), 0), *low]


def _if_equal(argument: int, value: int, mask: int = _ALL) -> list[_Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
        (_AND, 0, 0, mask),
        (_EQUAL, 0, 1, value),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _unless_one_of(argument: int, values: Sequence[int], mask: int = _ALL) -> list[_Instruction]:
    """Allow a call unless an argument has one of these values."""
    return [
        (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
        (_AND, 0, 0, mask),
        *((_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _error(number: int) -> _Instruction:
    return _RETURN, 0, 0, _ERROR | number
