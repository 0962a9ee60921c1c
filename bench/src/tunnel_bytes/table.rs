//! The output: a table in Markdown.

use std::fmt;
use std::time::Duration;

/// The figures of both configurations.
pub(super) struct Table {
    pub(super) objects: u32,
    /// The time of each part of an idle member.
    pub(super) seconds: Duration,
    /// Without compression, and with it.
    pub(super) columns: [Measured; 2],
}

/// Bytes on the tunnel, in both directions. Each part of an idle member includes the tunnel itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The tunnel alone.
    pub(super) idle: u64,
    /// With the health checks and discovery of an idle member.
    pub(super) rounds: u64,
    /// With its watches.
    pub(super) watches: u64,
    /// A list.
    pub(super) list: u64,
    /// The length of the list as the client gets it.
    pub(super) list_length: u64,
}

const DAY: u128 = 24 * 60 * 60 * 1000;

// === impl Table ===

impl Table {
    /// Kilobytes a day.
    fn kilobytes_a_day(&self, bytes: u64) -> u64 {
        let milliseconds = self.seconds.as_millis().max(1);
        u64::try_from(u128::from(bytes) * DAY / milliseconds / 1000).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a_day = |part: fn(&Measured) -> u64| self.columns.map(|column| self.kilobytes_a_day(part(&column)));
        let length = self.columns[0].list_length / 1000;
        let rows = [
            ("tunnel alone, a day".to_owned(), a_day(|it| it.idle)),
            ("health checks and discovery, a day".to_owned(), a_day(|it| it.rounds.saturating_sub(it.idle))),
            ("seven watches, a day".to_owned(), a_day(|it| it.watches.saturating_sub(it.idle))),
            ("**idle member, a day**".to_owned(), a_day(|it| (it.rounds + it.watches).saturating_sub(it.idle))),
            (
                format!("list of {} ConfigMaps ({length} kB)", self.objects),
                self.columns.map(|column| column.list / 1000),
            ),
        ];
        writeln!(f, "| bytes on the tunnel, with TLS | not compressed | compressed | ratio |")?;
        writeln!(f, "|---|---|---|---|")?;
        for (part, [before, after]) in rows {
            let tenths = before * 10 / after.max(1);
            writeln!(f, "| {part} | {before} kB | {after} kB | {}.{} |", tenths / 10, tenths % 10)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tunnel_counts_once() {
        let before = Measured { idle: 100, rounds: 1100, watches: 2100, list: 3_000_000, list_length: 2_900_000 };
        let after = Measured { idle: 100, rounds: 200, watches: 300, list: 100_000, list_length: 2_900_000 };
        let table = Table { objects: 2000, seconds: Duration::from_secs(100), columns: [before, after] };
        assert_eq!(
            table.to_string(),
            "| bytes on the tunnel, with TLS | not compressed | compressed | ratio |\n\
             |---|---|---|---|\n\
             | tunnel alone, a day | 86 kB | 86 kB | 1.0 |\n\
             | health checks and discovery, a day | 864 kB | 86 kB | 10.0 |\n\
             | seven watches, a day | 1728 kB | 172 kB | 10.0 |\n\
             | **idle member, a day** | 2678 kB | 345 kB | 7.7 |\n\
             | list of 2000 ConfigMaps (2900 kB) | 3000 kB | 100 kB | 30.0 |\n"
        );
    }
}
