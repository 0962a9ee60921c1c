//! The formats of a list.

use std::io::Write;

use serde_json::Value;

use super::yaml;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A table
    Table,
    /// A document for scripts
    Json,
    /// The same document
    Yaml,
}

// === impl Format ===

impl Format {
    /// Writes the document, or the table if that is the format.
    pub(super) fn write(
        self,
        document: &Value,
        table: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        match self {
            Self::Table => return table(out),
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, document)?;
                writeln!(out)?;
            }
            Self::Yaml => out.write_all(yaml::document(document).as_bytes())?,
        }
        Ok(())
    }
}
