use proptest::prelude::*;

use super::*;
use crate::schema::program_for;
use crate::view::tests::view;

fn stream(kind: &str, filter: Filter) -> WatchStream {
    WatchStream::new(view(), program_for("", "v1", kind), filter)
}

fn push_all(stream: &mut WatchStream, chunks: &[&[u8]]) -> Result<Vec<Bytes>, StreamError> {
    let mut out = Vec::new();
    for chunk in chunks {
        stream.push(&Bytes::copy_from_slice(chunk), &mut out)?;
    }
    stream.finish().map(|()| out)
}

#[track_caller]
fn check(kind: &str, filter: Filter, host: &str, shown: &str) {
    let out = push_all(&mut stream(kind, filter), &[host.as_bytes()]).unwrap();
    assert_eq!(String::from_utf8(out.concat()).unwrap(), shown);
}

#[test]
fn events_of_others_are_left_out() {
    let event = |kind: &str, namespace: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"namespace\":\"{namespace}\"}}}}}}\n"
        )
    };
    for kind in ["ADDED", "MODIFIED", "DELETED", "SOMETHING_NEW"] {
        let host = [event(kind, "edge-hz"), event(kind, "edge-ke"), event(kind, "kube-system")].concat();
        check("pods", Filter::ByNamespace, &host, &event(kind, "edge"));
    }
}

#[test]
fn bookmarks_pass() {
    let bookmark = concat!(
        r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","#,
        r#""annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n"
    );
    check("pods", Filter::ByNamespace, bookmark, bookmark);
    check("namespaces", Filter::ByName, bookmark, bookmark);
}

#[test]
fn errors_contain_virtual_names() {
    check(
        "pods",
        Filter::ByNamespace,
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","message":"too old: edge-ke"}}"#,
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","message":"too old: edge"}}"#,
    );
}

#[test]
fn namespaces_are_shown_by_their_name() {
    check(
        "namespaces",
        Filter::ByName,
        r#"{"object":{"metadata":{"name":"edge-ke"}},"type":"ADDED"} {"object":{"metadata":{"name":"edge-hz"}},"type":"ADDED"}"#,
        r#"{"object":{"metadata":{"name":"edge"}},"type":"ADDED"} "#,
    );
}

/// An event as a watch of Tables sends it: `columns` is the value of `columnDefinitions`.
fn table(kind: &str, columns: &str, name: &str) -> String {
    format!(
        concat!(
            r#"{{"type":"{kind}","object":{{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":{columns},"#,
            r#""rows":[{{"cells":["{name}","Active"],"object":{{"metadata":{{"name":"{name}"}}}}}}]}}}}"#,
            "\n"
        ),
        kind = kind,
        columns = columns,
        name = name
    )
}

const COLUMNS: &str = r#"[{"name":"Name"},{"name":"Status"}]"#;

#[test]
fn the_columns_of_the_first_table_hold_for_all() {
    for none in ["null", "[]"] {
        let host = [table("ADDED", COLUMNS, "edge-ke"), table("ADDED", none, "default-ke")].concat();
        let shown = [table("ADDED", COLUMNS, "edge"), table("ADDED", none, "default")].concat();
        check("namespaces", Filter::ByName, &host, &shown);
    }
}

#[test]
fn columns_of_a_hidden_table_are_sent_later() {
    for none in ["null", "[]"] {
        let host = [
            table("ADDED", COLUMNS, "edge-hz"),
            table("ADDED", none, "kube-system"),
            table("ADDED", none, "edge-ke"),
            table("ADDED", none, "default-ke"),
        ]
        .concat();
        let shown = [table("ADDED", COLUMNS, "edge"), table("ADDED", none, "default")].concat();
        check("namespaces", Filter::ByName, &host, &shown);
        for size in 1..host.len() {
            let chunks: Vec<_> = host.as_bytes().chunks(size).collect();
            let out = push_all(&mut stream("namespaces", Filter::ByName), &chunks).unwrap();
            assert_eq!(String::from_utf8(out.concat()).unwrap(), shown, "chunks of {size}");
        }
    }
    let without = table("ADDED", "[]", "edge-ke").replace(r#""columnDefinitions":[],"#, "");
    let out = push_all(
        &mut stream("namespaces", Filter::ByName),
        &[table("ADDED", COLUMNS, "edge-hz").as_bytes(), without.as_bytes()],
    );
    let shown: serde_json::Value = serde_json::from_slice(&out.unwrap().concat()).unwrap();
    assert_eq!(shown["object"]["columnDefinitions"], serde_json::from_str::<serde_json::Value>(COLUMNS).unwrap());
}

#[test]
fn columns_may_come_with_a_bookmark() {
    let host = [table("BOOKMARK", COLUMNS, ""), table("ADDED", "null", "edge-ke")].concat();
    let shown = [table("BOOKMARK", COLUMNS, ""), table("ADDED", "null", "edge")].concat();
    check("namespaces", Filter::ByName, &host, &shown);
}

#[test]
fn one_foreign_object_is_enough() {
    let mixed = r#"{"type":"ADDED","object":{"metadata":{"namespace":"edge-hz"}},"object":{"metadata":{"namespace":"edge-ke"}}}"#;
    check("pods", Filter::ByNamespace, mixed, "");
}

#[test]
fn a_frame_is_forwarded_with_its_line_feed_at_once() {
    let mut stream = stream("pods", Filter::Everything);
    let mut out = Vec::new();
    stream.push(&Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{}}\n{\"ty"), &mut out).unwrap();
    assert_eq!(out.concat(), b"{\"type\":\"ADDED\",\"object\":{}}\n");
    assert!(stream.finish().is_err());
}

#[test]
fn newer_names_are_used() {
    let event = Bytes::from_static(br#"{"type":"ADDED","object":{"metadata":{"namespace":"new-ke"}}}"#);
    let mut stream = stream("pods", Filter::ByNamespace);
    let mut out: Vec<Bytes> = Vec::new();
    stream.push(&event, &mut out).unwrap();
    assert!(out.is_empty());

    let mut index = crate::Index::new();
    index.insert("new-ke".parse().unwrap(), "ke".parse().unwrap(), "new".parse().unwrap()).unwrap();
    stream.remap(Mapping::new("ke".parse().unwrap(), std::sync::Arc::new(index)));
    stream.push(&event, &mut out).unwrap();
    assert_eq!(out.concat(), br#"{"type":"ADDED","object":{"metadata":{"namespace":"new"}}}"#);
}

#[test]
fn memory_is_bounded_by_the_limit() {
    let long = format!("{{\"type\":\"ADDED\",\"object\":{{\"a\":\"{}\"}}}}", "x".repeat(5000));
    let chunks: Vec<_> = long.as_bytes().chunks(100).collect();
    let mut limited = stream("pods", Filter::Everything).limited_to(1000);
    assert_eq!(push_all(&mut limited, &chunks).unwrap_err(), StreamError::TooLong { limit: 1000 });
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_bytes(
        namespaces in proptest::collection::vec(prop_oneof!["edge-ke", "edge-hz", ""], 0..6),
        space in "[ \n]{0,2}",
        size in 1..70_usize,
    ) {
        let events = namespaces.iter().map(|namespace| match &**namespace {
            "" => format!("{{\"type\":\"BOOKMARK\",\"object\":{{}}}}{space}"),
            _ => format!("{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"namespace\":\"{namespace}\"}}}}}}{space}"),
        });
        let text = events.collect::<String>();
        let chunks: Vec<_> = text.as_bytes().chunks(size).collect();
        let pieces = push_all(&mut stream("pods", Filter::ByNamespace), &chunks).unwrap();
        let whole = push_all(&mut stream("pods", Filter::ByNamespace), &[text.as_bytes()]).unwrap();
        prop_assert_eq!(pieces.concat(), whole.concat());
    }

    #[test]
    fn no_input_panics(chunks in proptest::collection::vec("[\\[\\]{}\",:a1 \\\\]{0,8}|\\{\"object\":", 0..12)) {
        let chunks: Vec<_> = chunks.iter().map(String::as_bytes).collect();
        let pieces = push_all(&mut stream("pods", Filter::ByNamespace), &chunks).map(|out| out.concat());
        let whole = push_all(&mut stream("pods", Filter::ByNamespace), &[&chunks.concat()]).map(|out| out.concat());
        prop_assert_eq!(pieces.is_ok(), whole.is_ok());
        if let (Ok(pieces), Ok(whole)) = (pieces, whole) {
            prop_assert_eq!(pieces, whole);
        }
    }
}
