//! The flags of all three programs, for their man pages and shell completions.

use clap::{Command, CommandFactory as _, ValueEnum};

/// A program of Atoll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// The operator's command.
    Atoll,
    /// The binary in the cloud.
    ProxyServer,
    /// The binary at the edge.
    ProxyAgent,
}

// === impl Program ===

impl Program {
    /// All programs.
    pub(crate) const ALL: [Self; 3] = [Self::Atoll, Self::ProxyServer, Self::ProxyAgent];

    /// Its flags and subcommands. Those of `atoll` itself are an argument, because they include the commands that need
    /// this function.
    pub(crate) fn command(self, atoll: &Command) -> Command {
        let mut command = match self {
            Self::Atoll => atoll.clone(),
            Self::ProxyServer => proxy_server::flags::Flags::command(),
            Self::ProxyAgent => proxy_agent::flags::Flags::command(),
        };
        command.build();
        command
    }

    /// The section of the manual: commands of users, or of administrators (`man man`).
    pub(crate) fn section(self) -> &'static str {
        match self {
            Self::Atoll => "1",
            Self::ProxyServer | Self::ProxyAgent => "8",
        }
    }
}
