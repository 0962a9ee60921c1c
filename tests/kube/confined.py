"""Runs a script again where what it starts reaches no network and writes to one folder: pods of tests/kube run their commands
on this machine."""

import ctypes
import os
import struct
import subprocess
import sys

from plane import Failed

# In a user namespace, so that root's rights over this machine are left behind and others need no root.
UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--ipc", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]

AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR, MOUNT_ATTR_RDONLY = 442, 1


def demand():
    """Fails if this user cannot make the namespaces."""
    done = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"cannot make namespaces: {done.stderr.strip()}; run this as root, in a container with --privileged, or "
                     "allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0)")


def again(*more):
    """The exit code of this script, with more arguments, in namespaces of its own. Whatever it started ends with it."""
    return subprocess.run([*UNSHARE, sys.executable, *sys.argv, *more]).returncode


def confine(folder, *names):
    """In these namespaces: brings up loopback, where `names` are found, and makes all files read-only but those of `folder`."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
    for command in (["ip", "link", "set", "lo", "up"],
                    ["mount", "-t", "tmpfs", "none", "/run"],  # daemons of this machine listen there
                    ["mount", "--bind", hosts, "/etc/hosts"],
                    ["mount", "--bind", folder, folder]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    set_attributes("/", MOUNT_ATTR_RDONLY, 0, AT_RECURSIVE)
    set_attributes(folder, 0, MOUNT_ATTR_RDONLY, 0)


def set_attributes(path, on, off, flags):
    """mount_setattr(2): unlike a remount it reaches every mount below, and keeps the attributes that it does not name."""
    attributes = struct.pack("QQQQ", on, off, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, attributes, ctypes.c_size_t(len(attributes))):
        raise Failed(f"cannot change how {path} is mounted: {os.strerror(ctypes.get_errno())}; Linux 5.12 or newer can")
