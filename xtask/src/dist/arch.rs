//! The architectures of a release, and what each tool calls them.

use std::env::consts::ARCH;

use clap::ValueEnum;

/// An architecture of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    /// amd64
    #[value(name = "x86_64")]
    X86_64,
    /// arm64
    #[value(name = "aarch64")]
    Aarch64,
}

// === impl Arch ===

impl Arch {
    /// The name in `uname -m`, and in the names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The name in Debian, Go, OCI and krew.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The target of rustc.
    pub(crate) fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// Whether this machine runs its programs without an emulator.
    pub(crate) fn is_native(self) -> bool {
        self.name() == ARCH
    }

    /// A tool of GCC or binutils for this architecture.
    pub(crate) fn tool(self, name: &str) -> String {
        if self.is_native() { name.to_owned() } else { format!("{}-linux-gnu-{name}", self.name()) }
    }

    /// Debian's packages of the compiler, and of the static C library.
    pub(crate) fn compiler_packages(self) -> [&'static str; 2] {
        match self {
            _ if self.is_native() => ["gcc", "libc6-dev"],
            Self::X86_64 => ["gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"],
            Self::Aarch64 => ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        }
    }

    /// The emulator of QEMU for programs of this architecture.
    pub(crate) fn emulator(self) -> String {
        format!("qemu-{}-static", self.name())
    }
}
