//! Reads an export, one document at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::Value;

use crate::clusters::document::{Document, End, Header};

/// The maximum size of a document, in bytes. An object has at most 1.5 MiB in etcd, and may be longer as YAML.
const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// The documents of a file.
pub(super) struct Reader<R> {
    lines: R,
    line: u64,
}

// === impl Reader ===

impl Reader<BufReader<File>> {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::new(BufReader::new(file)))
    }
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(lines: R) -> Self {
        Self { lines, line: 0 }
    }

    /// The next document. Documents without content are ignored.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Document>> {
        loop {
            let begun = self.line + 1;
            let Some(text) = self.text()? else { return Ok(None) };
            if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
                continue;
            }
            // A snippet of the file in an error could show the data of a Secret.
            let value: Value = serde_saphyr::from_str_with_options(&text, options())
                .map_err(|error| anyhow!("the document at line {begun}: {}", error.without_snippet()))?;
            return Document::parse(value).with_context(|| format!("the document at line {begun}")).map(Some);
        }
    }

    /// The text before the next separator. `None` at the end.
    fn text(&mut self) -> anyhow::Result<Option<String>> {
        let (mut text, mut has_any) = (String::new(), false);
        loop {
            let before = text.len();
            let left = MAX_DOCUMENT.saturating_sub(u64::try_from(before)?);
            let read = (&mut self.lines).take(left + 1).read_line(&mut text).context("cannot read the file")?;
            ensure!(u64::try_from(read)? <= left, "the document at line {} is too long", self.line);
            if read == 0 {
                return Ok(has_any.then_some(text));
            }
            self.line += 1;
            has_any = true;
            if text[before..].trim_end() == "---" {
                text.truncate(before);
                return Ok(Some(text));
            }
        }
    }
}

/// Checks that the file is complete, and returns its first and its last document.
pub(super) fn examine(path: &Path) -> anyhow::Result<(Header, End)> {
    let mut reader = Reader::open(path)?;
    let Some(Document::Header(header)) = reader.next()? else {
        bail!("{} is not a file of `atoll clusters export`", path.display());
    };
    let mut count = 0;
    loop {
        match reader.next()? {
            Some(Document::Object(_)) => count += 1,
            Some(Document::Header(_)) => bail!("{} contains two exports", path.display()),
            Some(Document::End(end)) => {
                let expected: usize = end.objects.values().sum();
                ensure!(count == expected, "{} has {count} objects instead of {expected}", path.display());
                ensure!(reader.next()?.is_none(), "{} continues after its end", path.display());
                return Ok((header, end));
            }
            None => bail!("{} is not complete: its last document is missing", path.display()),
        }
    }
}

/// Limits for one object.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 4_000_000,
            max_nodes: 2_000_000,
            max_depth: 1_000,
            max_aliases: 0,
            max_anchors: 0,
            max_total_scalar_bytes: 32 * 1024 * 1024,
        },
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clusters::yaml;

    fn document(value: &Value) -> String {
        format!("---\n{}", yaml::document(value))
    }

    fn export(objects: &[Value], count: usize) -> String {
        let header = serde_json::to_value(Header::new(&"ke".parse().unwrap(), Some("u"), true)).unwrap();
        let end = serde_json::to_value(End::new([("ConfigMap".to_owned(), count)].into())).unwrap();
        [&header].into_iter().chain(objects).chain([&end]).map(document).collect()
    }

    fn examined(text: &str) -> anyhow::Result<(Header, End)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        examine(file.path())
    }

    fn config_map(data: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": data}})
    }

    #[test]
    fn an_export_is_read_as_written() {
        let objects = [config_map("a\n---\nb"), config_map(&"x".repeat(1_500_000))];
        let text = export(&objects, 2);
        let (header, end) = examined(&text).unwrap();
        assert_eq!((header.identity.as_deref(), end.objects["ConfigMap"]), (Some("u"), 2));
        let mut reader = Reader::new(text.as_bytes());
        reader.next().unwrap();
        for object in objects {
            assert_eq!(reader.next().unwrap(), Some(Document::Object(object)));
        }
    }

    #[test]
    fn files_that_are_not_complete_are_refused() {
        let text = export(&[config_map("x")], 1);
        let cut = text.rfind("---").unwrap();
        for (text, expect) in [
            (text[..cut].to_owned(), "is not complete"),
            (export(&[config_map("x")], 2), "has 1 objects instead of 2"),
            (text.clone() + &document(&config_map("y")), "continues after its end"),
            (document(&config_map("y")) + &text, "is not a file of `atoll clusters export`"),
            (text[..cut].to_owned() + &text, "contains two exports"),
            (text.replace("kind: \"ConfigMap\"", ""), "has no apiVersion, no kind"),
            (text.replace("\"x\"", "\"x"), "the document at line"),
        ] {
            let error = format!("{:#}", examined(&text).unwrap_err());
            assert!(error.contains(expect), "{expect:?} in {error:?}");
        }
    }

    #[test]
    fn a_document_has_a_maximum_length() {
        let long = "a".repeat(usize::try_from(MAX_DOCUMENT).unwrap() + 1);
        let error = Reader::new(long.as_bytes()).next().unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
