//! Files that exist twice must be equal: Helm reads no files outside of a chart.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::Tree;

/// A file, and its copy.
const COPIES: [(&str, &str); 2] = [
    ("configs/kubernetes/agent-rbac.yaml", "configs/helm/atoll/files/agent-rbac.yaml"),
    ("configs/kubernetes/server/karmada-rbac.yaml", "configs/helm/atoll/files/karmada-rbac.yaml"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = |path: &str| tree.text(Path::new(path)).unwrap_or_default();
    let differs = |(source, copy): &(&str, &str)| text(source).is_empty() || text(source) != text(copy);
    let finding = |(source, copy): (&str, &str)| {
        let line = 1 + text(source).lines().zip(text(copy).lines()).take_while(|(a, b)| a == b).count();
        Finding::new(Path::new(copy), line, format!("differs from {source}"), format!("run `cp {source} {copy}`"))
    };
    COPIES.into_iter().filter(differs).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(changed: &[(&str, &str)]) -> Vec<String> {
        let both = COPIES.into_iter().flat_map(|(source, copy)| [(source, "a\nb\n"), (copy, "a\nb\n")]);
        let mut files: std::collections::BTreeMap<_, _> = both.collect();
        files.extend(changed.iter().copied());
        let tree: Tree = files.into_iter().map(|(path, text)| (path.into(), text.to_owned())).collect();
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_changed_line_is_found() {
        let (source, copy) = COPIES[0];
        assert_eq!(findings(&[]), [""; 0]);
        let finding = format!("{copy}:2: differs from {source}; run `cp {source} {copy}`");
        assert_eq!(findings(&[(source, "a\nc\n")]), [finding.as_str()]);
        assert_eq!(findings(&[(copy, "a\nb")]).len(), 1);
    }

    #[test]
    fn a_missing_file_is_no_copy() {
        let (source, copy) = COPIES[1];
        assert_eq!(findings(&[(source, ""), (copy, "")]).len(), 1);
    }
}
