use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lagoon {
    domain: Located<String>,
    #[serde(default)]
    islands: Vec<Island>,
    #[serde(default)]
    depth: Option<u32>,
    #[serde(default)]
    tide: Option<Duration>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Island {
    name: Located<String>,
    #[serde(default)]
    key: Option<Located<FilePath>>,
    #[serde(default)]
    mode: Option<Mode>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    Virtual,
    Physical { address: Located<String> },
}

impl Document for Lagoon {
    const KIND: &'static str = "Lagoon";

    fn read(document: Unread<'_>) -> Result<Self, Problems> {
        document.read()
    }

    fn check(&self, problems: &mut Problems) {
        for (n, island) in self.islands.iter().enumerate() {
            if self.islands[..n].iter().any(|other| other.name == island.name) {
                problems.at(&island.name, format_args!("island `{}` is given twice", island.name));
            }
        }
        if self.depth == Some(0) {
            problems.general("a lagoon without depth");
        }
    }
}

const HEAD: &str = "apiVersion: atoll.dev/v1alpha1\nkind: Lagoon\n";

fn read_one(body: &str) -> Result<Lagoon, String> {
    parse(&format!("{HEAD}{body}"), Path::new("/etc/atoll/lagoon.yaml"))
        .map_err(|errors| errors.to_string().replace("/etc/atoll/lagoon.yaml", "L"))
}

#[test]
fn a_whole_document_is_read() {
    let lagoon = read_one(
        "domain: atoll.internal
islands:
- name: east
  key: keys/east.pem
  mode: virtual
- {name: west, key: /abs/west.pem, mode: {physical: {address: \"10.2.0.1:6443\"}}}
tide: 1m30s
labels: {anything: goes}
",
    )
    .unwrap();
    assert_eq!(*lagoon.domain, "atoll.internal");
    assert_eq!(lagoon.domain.location(), Location::new(3, 9));
    let east = &lagoon.islands[0];
    let key = east.key.as_ref().unwrap();
    assert_eq!(key.as_path(), Path::new("/etc/atoll/keys/east.pem"));
    assert_eq!(key.location(), Location::new(6, 8));
    let west = &lagoon.islands[1];
    assert_eq!(west.key.as_ref().unwrap().as_path(), Path::new("/abs/west.pem"));
    assert_eq!(west.mode, Some(Mode::Physical { address: "10.2.0.1:6443".to_owned().into() }));
    assert_eq!(lagoon.tide.unwrap().get().as_secs(), 90);
}

#[test]
fn every_unknown_key_and_every_contradiction_is_reported_at_once() {
    let errors = read_one(
        "domain: a
colour: blue
islands:
- name: east
  nmae: typo
- name: east
  mode: {physical: {address: x, port: 1}}
depth: 0
",
    )
    .unwrap_err();
    assert_eq!(
        errors,
        "L:4:1: unknown key `colour`; known keys: domain, islands, depth, tide, labels
L:7:3: unknown key `nmae`; known keys: name, key, mode
L:8:9: island `east` is given twice
L:9:33: unknown key `port`; known keys: address
L: a lagoon without depth"
    );
}

#[test]
fn invalid_values_are_reported_with_their_lines_and_earlier_unknown_keys() {
    for (body, expected) in [
        (
            "domain: a\nxyz: 1\ndepth: deep\n",
            "L:4:1: unknown key `xyz`; known keys: domain, islands, depth, tide, labels\nL:5:8: expected a whole number that fits u32",
        ),
        (
            "domain: a\ntide: 10\n",
            "L:4:7: \"10\" is not a duration such as 10s, 1m30s or 250ms: a unit (h, m, s or ms) is missing",
        ),
        ("domain: a\nislands:\n- {}\n", "L:5:3: key `name` is missing"),
        ("domain: a\ndomain: b\n", "L:4:1: duplicate key `domain`"),
        ("domain: a\nislands:\n- {name: x, mode: imaginary}\n", "L:5:19: `imaginary` is not one of virtual, physical"),
        ("domain: a\nislands:\n- {name: x, key: ''}\n", "L:5:18: a file path must not be empty"),
        ("domain: [a]\n", "L:3:9: expected a string"),
        ("domain: a\nislands: x\n", "L:4:10: expected a list"),
        ("domain: a\nislands: [x]\n", "L:4:11: expected a mapping of keys to values"),
        ("domain:\n", "L:3:7: null is not allowed here"),
        ("domain: *x\n", "L:3:9: no anchor of this name precedes the alias"),
        ("domain: !env HOME\n", "L:3:14: unsupported tag `!env`"),
    ] {
        assert_eq!(read_one(body).unwrap_err(), expected, "{body}");
    }
}

#[test]
fn the_environment_is_not_used() {
    let lagoon = read_one("domain: ${HOME}\nislands: [{name: $PATH, key: ~/x}]\n").unwrap();
    assert_eq!(*lagoon.domain, "${HOME}");
    assert_eq!(*lagoon.islands[0].name, "$PATH");
    assert_eq!(lagoon.islands[0].key.as_ref().unwrap().as_path(), Path::new("/etc/atoll/~/x"));
}

#[test]
fn the_document_of_the_kind_is_selected() {
    let file = format!(
        "%YAML 1.2
# a comment
---
apiVersion: atoll.dev/v1alpha1
kind: Reef
unknown: {{to: us}}
text: |
  ---
  is no marker when indented
...
---
# only a comment
--- # here
{HEAD}domain: a
bad: 1
---
apiVersion: v1
kind: Reef
"
    );
    let errors = parse::<Lagoon>(&file, Path::new("L")).unwrap_err();
    assert_eq!(errors.problems().len(), 1, "{errors}");
    assert_eq!(errors.problems()[0].location(), Location::new(17, 1));

    let file = file.replace("bad: 1", "depth: 1");
    assert_eq!(parse::<Lagoon>(&file, Path::new("L")).unwrap().depth, Some(1));
}

#[test]
fn the_kinds_of_other_documents_are_reported() {
    let refused = |file: &str| parse::<Lagoon>(file, Path::new("L")).unwrap_err().to_string();
    assert_eq!(refused(""), "L: the file contains no Lagoon");
    assert_eq!(refused("# nothing\n---\n---\n"), "L: the file contains no Lagoon");
    assert_eq!(refused("apiVersion: atoll.dev/v1alpha1\nkind: Reef\n"), "L: the file contains no Lagoon, only Reef");
    assert_eq!(refused("\ndomain: a\n"), "L:2:1: the document has no `kind`");
    assert_eq!(
        refused("kind: Lagoon\napiVersion: atoll.dev/v9\ndomain: a\n"),
        "L:2:13: unknown apiVersion `atoll.dev/v9`; expected atoll.dev/v1alpha1"
    );
    assert_eq!(refused("kind: Lagoon\ndomain: a\n"), "L:1:1: `apiVersion: atoll.dev/v1alpha1` is missing");
    assert_eq!(
        refused(&format!("{HEAD}domain: a\n---\n{HEAD}domain: b\n")),
        "L:6:7: a second Lagoon; the first is at line 2"
    );
    assert!(refused("- a\n- b\n").starts_with("L:1:1: "));
    assert!(refused("a: [1, 2\nb: }\n").starts_with("L:2:"));
}

#[test]
fn anchors_work_and_alias_bombs_are_refused() {
    let lagoon = read_one("domain: &d a\nlabels: {x: *d, y: *d}\n").unwrap();
    assert_eq!(lagoon.labels["y"], "a");

    let mut bomb = "domain: a\nlabels:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "  a{level}: &a{level} [{below}]").unwrap();
    }
    assert!(read_one(&bomb).is_err());
    let deep = format!("domain: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(read_one(&deep).is_err());
}

#[test]
fn files_are_bounded_and_must_be_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lagoon.yaml");
    let refused = || load::<Lagoon>(&path).unwrap_err().to_string();

    assert!(refused().contains("cannot read the file: No such file"));
    fs::write(&path, [0xff, 0xfe, b'a']).unwrap();
    assert!(refused().contains("not UTF-8"));

    let mut text = format!("\u{feff}{HEAD}domain: a\nislands: [{{name: x, key: k.pem}}]\n#");
    text.push_str(&" ".repeat(usize::try_from(MAX_BYTES).unwrap() - text.len()));
    fs::write(&path, &text).unwrap();
    let lagoon: Lagoon = load(&path).unwrap();
    assert_eq!(lagoon.islands[0].key.as_ref().unwrap().as_path(), directory.path().join("k.pem"));
    let kinds = kinds(&path).unwrap();
    assert_eq!(kinds, [Located::from("Lagoon".to_owned())]);
    assert_eq!(kinds[0].location(), Location::new(2, 7));
    text.push(' ');
    fs::write(&path, &text).unwrap();
    assert!(refused().contains("larger than"));
}

#[test]
fn control_characters_are_escaped() {
    let errors = read_one(&format!("domain: a\n\"\\e[31m{}\": 1\n", "x".repeat(1_000))).unwrap_err();
    assert!(!errors.chars().any(char::is_control), "{errors:?}");
    assert!(errors.len() < 600, "{}", errors.len());
}

/// Text in quotes; what YAML calls printable, and what JSON escapes.
const TEXT: &str = "[ -~é世🏝\n\t\u{1}]{0,12}";

proptest! {
    /// JSON is YAML, so a reader that we did not write can tell what a document says.
    #[test]
    fn json_reads_as_serde_json_reads_it(
        domain in TEXT,
        labels in proptest::collection::btree_map(TEXT, TEXT, 0..5),
        depth in proptest::option::of(1..u32::MAX),
        names in proptest::collection::btree_set(TEXT, 0..5),
        seconds in 0..100_000_u32,
    ) {
        let islands: Vec<_> = names
            .iter()
            .map(|name| json!({"name": name, "key": "/k", "mode": {"physical": {"address": name}}}))
            .collect();
        let mut document = json!({
            "domain": domain, "labels": labels, "depth": depth, "islands": islands,
            "tide": format!("{seconds}s"),
        });
        let expected: Lagoon = serde_json::from_value(document.clone()).unwrap();
        document["apiVersion"] = API_VERSION.into();
        document["kind"] = Lagoon::KIND.into();
        for text in [document.to_string(), format!("{document:#}")] {
            let lagoon = parse::<Lagoon>(&text, Path::new("L"));
            prop_assert_eq!(lagoon.map_err(|errors| errors.to_string()), Ok(&expected).cloned());
        }
    }

    #[test]
    fn no_text_panics(text in "(---|\\.\\.\\.|[a-z&*:\\[\\]{}|>%#'\"\\- \n]){0,60}") {
        let _ = parse::<Lagoon>(&text, Path::new("L"));
        let _ = read_one(&text);
    }
}
