use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::program_for;
use crate::view::tests::view;

fn pod(number: usize, namespace: &str) -> Value {
    json!({
        "metadata": {"name": format!("pod-{number}"), "namespace": namespace, "labels": {"a": "}],\"]["}},
        "spec": {"nodeSelector": {"location": "beijing"}, "containers": [{"name": "c", "args": ["\\\"", "é"]}]}
    })
}

fn shown_pod(number: usize, namespace: &str) -> Value {
    let mut pod = pod(number, namespace);
    pod["spec"].as_object_mut().unwrap().remove("nodeSelector");
    pod
}

fn stream(resource: &str, filter: Filter) -> ListStream {
    ListStream::new(view(), program_for("", "v1", resource), filter).sealing(|token| format!("sealed({token})"))
}

fn push_all(stream: &mut ListStream, chunks: &[&[u8]]) -> Result<Vec<u8>, StreamError> {
    let mut out: Vec<Bytes> = Vec::new();
    for chunk in chunks {
        stream.push(&Bytes::copy_from_slice(chunk), &mut out)?;
        stream.resume(&mut out)?;
    }
    stream.finish()?;
    assert!(out.iter().all(|piece| !piece.is_empty()));
    Ok(out.concat())
}

fn shown(text: &str) -> String {
    String::from_utf8(push_all(&mut stream("pods", Filter::ByNamespace), &[text.as_bytes()]).unwrap()).unwrap()
}

fn list(namespaces: &[&str]) -> Value {
    let items: Vec<_> = namespaces.iter().enumerate().map(|(number, namespace)| pod(number, namespace)).collect();
    json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "next", "remainingItemCount": 3},
        "items": items
    })
}

fn expected(namespaces: &[&str]) -> Value {
    let own = namespaces.iter().enumerate().filter(|(_, namespace)| namespace.ends_with("-ke"));
    let items: Vec<_> = own.map(|(number, namespace)| shown_pod(number, namespace.trim_end_matches("-ke"))).collect();
    json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "sealed(next)"},
        "items": items
    })
}

#[test]
fn any_choice_of_items_is_a_valid_list() {
    for choice in 0..32_u32 {
        let namespaces: Vec<_> = (0..5).map(|bit| if choice >> bit & 1 == 1 { "edge-ke" } else { "edge-hz" }).collect();
        for text in [list(&namespaces).to_string(), serde_json::to_string_pretty(&list(&namespaces)).unwrap()] {
            assert_eq!(serde_json::from_str::<Value>(&shown(&text)).unwrap(), expected(&namespaces));
        }
    }
}

#[test]
fn indented_lists_stay_indented() {
    let text =
        serde_json::to_string_pretty(&list(&["edge-hz", "edge-ke", "edge-hz", "default-ke", "edge-hz"])).unwrap();
    let own = serde_json::to_string_pretty(&list(&["edge-ke", "default-ke"])).unwrap();
    assert_eq!(shown(&text), shown(&own).replace("pod-1", "pod-3").replace("pod-0", "pod-1"));
    assert!(shown(&serde_json::to_string_pretty(&list(&["edge-hz"])).unwrap()).contains("\"items\": []"));
}

#[test]
fn lists_come_in_many_forms() {
    for same in [
        "{}",
        " { } ",
        r#"{"items":null}"#,
        r#"{"items":[]}"#,
        r#"{"items":[ ],"metadata":null}"#,
        r#"{"items":{},"metadata":{}}"#,
        r#"{"kind":"List","x":[1,{"metadata":{"namespace":"edge-hz"}}],"items":[]}"#,
        "{\"items\":[]}\n",
        r#"{"a":1,"b":-1.5e3,"c":true,"d":"]}"}"#,
    ] {
        assert_eq!(shown(same), same);
    }
    assert_eq!(
        shown(r#"{"items":[{"metadata":{"namespace":"edge-ke"}}],"metadata":{"continue":"x","remainingItemCount":1}}"#),
        r#"{"items":[{"metadata":{"namespace":"edge"}}],"metadata":{"continue":"sealed(x)"}}"#
    );
    // If the host selects only visible objects, its count is correct.
    let mut of_one_namespace = stream("pods", Filter::ByNamespace).counted();
    let counted = br#"{"items":[],"metadata":{"remainingItemCount":1}}"#;
    assert_eq!(push_all(&mut of_one_namespace, &[counted]).unwrap(), counted);
    // Items without an owner are removed, whatever their type.
    assert_eq!(
        shown(r#"{"it\u0065ms":[1, "a",null,[],{}],"metadata":{"continue":""}}"#),
        r#"{"it\u0065ms":[],"metadata":{"continue":""}}"#
    );
}

#[test]
fn tables_lose_the_rows_of_others() {
    let row = |cells: Value, namespace: &str| json!({"cells": cells, "object": {"metadata": {"namespace": namespace}}});
    let table = |rows: Value| {
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
            "columnDefinitions": [{"name": "Name"}, {"name": "Claim"}, {"name": "Other"}],
            "rows": rows
        })
    };
    let host = table(json!([
        row(json!(["a", "edge-hz/a", ""]), "edge-hz"),
        row(json!(["edge-ke", "edge-ke/a", "edge-ke"]), "edge-ke"),
        {"cells": ["x"], "object": null},
    ]));
    let virtual_form = table(json!([row(json!(["edge-ke", "edge/a", "edge-ke"]), "edge")]));
    assert_eq!(serde_json::from_str::<Value>(&shown(&host.to_string())).unwrap(), virtual_form);
}

#[test]
fn memory_is_bounded_by_the_limit() {
    let limited = || stream("pods", Filter::ByNamespace).limited_to(1000);
    let long = format!(r#"{{"items":[{{"a":"{}"}}]}}"#, "x".repeat(5000));
    for chunk in [7, 999, 1001] {
        let chunks: Vec<_> = long.as_bytes().chunks(chunk).collect();
        assert_eq!(push_all(&mut limited(), &chunks), Err(StreamError::TooLong { limit: 1000 }));
    }
    let spaces = format!("{{\"items\":[{}", " ".repeat(5000));
    let chunks: Vec<_> = spaces.as_bytes().chunks(100).collect();
    assert_eq!(push_all(&mut limited(), &chunks), Err(StreamError::TooLong { limit: 1000 }));
    // The number of items is not limited.
    let many = list(&["edge-ke"; 100]).to_string();
    let chunks: Vec<_> = many.as_bytes().chunks(100).collect();
    assert!(push_all(&mut limited(), &chunks).is_ok());
}

#[test]
fn broken_lists_are_errors_wherever_they_are_cut() {
    for bad in [
        r#"{"items":[}]}"#,
        r#"{"items":[1 2]}"#,
        r#"{"items":[1,]}"#,
        r#"{"items":[,1]}"#,
        r#"{"items":[]]}"#,
        r#"{"items":[1}"#,
        r#"{"items" 1}"#,
        r#"{"items":}"#,
        "{,}",
        r#"{"a":1,}"#,
        "{} {}",
        "[]",
        "1",
        "",
        r#"{"items":[{]}"#,
        r#"{"items":["#,
        r#"{"items":[12"a"]}"#,
        "{a:1}",
        r#"{"items":[tru]}"#,
        r#"{"a":01}"#,
    ] {
        assert!(push_all(&mut stream("pods", Filter::ByNamespace), &[bad.as_bytes()]).is_err(), "{bad}");
        let bytes: Vec<_> = bad.as_bytes().chunks(1).collect();
        assert!(push_all(&mut stream("pods", Filter::ByNamespace), &bytes).is_err(), "{bad}");
    }
}

#[test]
fn one_split_anywhere_changes_nothing() {
    let value = list(&["edge-hz", "edge-ke", "edge-hz", "default-ke", "edge-hz"]);
    for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
        let whole = shown(&text);
        for split in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(split);
            let out = push_all(&mut stream("pods", Filter::ByNamespace), &[first, second]).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), whole, "split at {split}");
        }
    }
}

#[test]
fn a_long_item_waits_for_resume() {
    let text = list(&["edge-ke", "edge-ke"]).to_string();
    let mut stream = stream("pods", Filter::ByNamespace).deferring(100);
    let (mut out, mut waits): (Vec<Bytes>, _) = (Vec::new(), 0);
    for chunk in text.as_bytes().chunks(40) {
        stream.push(&Bytes::copy_from_slice(chunk), &mut out).unwrap();
        if stream.waiting().is_some() {
            waits += 1;
            let before = out.len();
            assert!(stream.finish().is_err());
            stream.resume(&mut out).unwrap();
            assert!(stream.waiting().is_none() && out.len() > before);
        }
    }
    stream.finish().unwrap();
    assert_eq!((out.concat(), waits), (shown(&text).into_bytes(), 2));
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_bytes(
        namespaces in proptest::collection::vec(prop_oneof!["edge-ke", "edge-hz", "default-ke"], 0..8),
        pretty: bool,
        sizes in proptest::collection::vec(1..90_usize, 1..20),
        longer in prop_oneof![1 => Just(usize::MAX), 2 => 0..400_usize],
    ) {
        let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
        let value = list(&namespaces);
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let mut rest = text.as_bytes();
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            let (chunk, behind) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        let out = push_all(&mut stream("pods", Filter::ByNamespace).deferring(longer), &chunks).unwrap();
        prop_assert_eq!(String::from_utf8(out).unwrap(), shown(&text));
    }

    #[test]
    fn no_input_panics(chunks in proptest::collection::vec("[\\[\\]{}\",:a1 \\\\]{0,8}|\"items\":\\[|\\{\"metadata\":", 0..12)) {
        let chunks: Vec<_> = chunks.iter().map(String::as_bytes).collect();
        let pieces = push_all(&mut stream("pods", Filter::ByNamespace), &chunks);
        let whole = push_all(&mut stream("pods", Filter::ByNamespace), &[&chunks.concat()]);
        prop_assert_eq!(pieces.is_ok(), whole.is_ok());
        if let (Ok(pieces), Ok(whole)) = (pieces, whole) {
            prop_assert_eq!(pieces, whole);
        }
    }
}

/// The host's names of the namespaces that exist: those of `newer`.
fn existing() -> Arc<ExistingNamespaces> {
    Arc::new(["edge-ke", "new-ke"].map(|name| name.as_bytes().into()).into())
}

/// The names of [`mapping`], and the namespace `new-ke`.
fn newer() -> Mapping {
    let mut index = crate::mapping::Index::new();
    for (host, cluster, name) in [("edge-ke", "ke", "edge"), ("new-ke", "ke", "new"), ("edge-hz", "hz", "edge")] {
        index.insert(host.parse().unwrap(), cluster.parse().unwrap(), name.parse().unwrap()).unwrap();
    }
    Mapping::new("ke".parse().unwrap(), Arc::new(index))
}

fn awaiting(resource: &str) -> ListStream {
    stream(resource, Filter::ByNamespace).awaiting_namespaces()
}

/// The output for these chunks, if `new-ke` becomes known as soon as an item waits for it. Also returns the names.
fn push_awaiting(stream: &mut ListStream, chunks: &[&[u8]]) -> (String, Vec<String>) {
    let (mut out, mut names): (Vec<Bytes>, _) = (Vec::new(), Vec::new());
    for chunk in chunks {
        stream.push(&Bytes::copy_from_slice(chunk), &mut out).unwrap();
        while stream.waiting().is_some() {
            if let Some(name) = stream.unknown() {
                names.push(String::from_utf8(name.to_vec()).unwrap());
                stream.await_only(existing());
                stream.remap(newer());
            }
            stream.resume(&mut out).unwrap();
        }
    }
    stream.finish().unwrap();
    (String::from_utf8(out.concat()).unwrap(), names)
}

proptest! {
    #[test]
    fn items_wait_for_their_namespaces_in_any_list(
        namespaces in proptest::collection::vec(prop_oneof!["edge-ke", "edge-hz", "new-ke", "gone-ke"], 0..8),
        is_indented: bool,
        (chunk, at_once) in (1..400_usize, prop_oneof![Just(usize::MAX), Just(400_usize)]),
    ) {
        let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
        let text = |list: &Value| {
            if is_indented { serde_json::to_string_pretty(list).unwrap() } else { list.to_string() }
        };
        let host = text(&list(&namespaces));
        let chunks: Vec<_> = host.as_bytes().chunks(chunk).collect();
        let mut stream = awaiting("pods").deferring(at_once);
        let (shown, names) = push_awaiting(&mut stream, &chunks);
        let own: Vec<_> = namespaces.iter().map(|name| if *name == "gone-ke" { "edge-hz" } else { name }).collect();
        prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), expected(&own));
        // Only the first item of an unknown namespace waits.
        let unknown: Vec<_> = namespaces.iter().filter(|name| ["new-ke", "gone-ke"].contains(name)).take(1).collect();
        prop_assert_eq!(names.iter().collect::<Vec<_>>(), unknown);
    }
}

#[test]
fn rows_and_claims_wait_for_their_namespaces() {
    let row = |namespace: &str| json!({"cells": ["a"], "object": {"metadata": {"namespace": namespace}}});
    let table = |rows: Value| json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": rows}).to_string();
    let (shown, names) = push_awaiting(&mut awaiting("pods"), &[table(json!([row("new-ke")])).as_bytes()]);
    assert_eq!((shown, &*names), (table(json!([row("new")])), &["new-ke".to_owned()][..]));
    let volumes = |namespace: &str| json!({"items": [{"spec": {"claimRef": {"namespace": namespace}}}]}).to_string();
    let mut stream =
        ListStream::new(view(), program_for("", "v1", "persistentvolumes"), Filter::ByClaim).awaiting_namespaces();
    let (shown, names) = push_awaiting(&mut stream, &[volumes("new-ke").as_bytes()]);
    assert_eq!((shown, &*names), (volumes("new"), &["new-ke".to_owned()][..]));
}

#[test]
fn a_name_that_hides_nothing_is_not_awaited() {
    // The name in a reference does not decide whether the object is visible, and other clusters have other names.
    let items = json!({"items": [
        {"metadata": {"namespace": "edge-ke"}, "subjects": [{"kind": "ServiceAccount", "namespace": "new-ke"}]},
        {"metadata": {"namespace": "unheard-of-hz"}},
    ]});
    let text = items.to_string();
    let mut out: Vec<Bytes> = Vec::new();
    let program = program_for("rbac.authorization.k8s.io", "v1", "rolebindings");
    let mut stream = ListStream::new(view(), program, Filter::ByNamespace).awaiting_namespaces();
    stream.push(&Bytes::from(text), &mut out).unwrap();
    assert_eq!(stream.waiting(), None);
    stream.finish().unwrap();
}
