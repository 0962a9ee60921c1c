//! Events of a host, in the order and with the escapes in which an API server may write them.

use proptest::prelude::*;

/// Text within an object that is neither a name nor a bookmark.
const DECOY: &str = r#"{\"type\":\"BOOKMARK\",\"namespace\":\"decoy-ke\",\"n\":{}}"#;

pub(crate) fn change(event: &str, namespace: &str, about: &str) -> String {
    format!(
        concat!(
            r#"{{"type":"{event}","object":{{"kind":"Event","apiVersion":"v1","metadata":{{"name":"a","#,
            r#""namespace":"{namespace}","resourceVersion":"5","annotations":{{"decoy":"{decoy}"}}}},"#,
            r#""involvedObject":{{"kind":"Pod","namespace":"{about}","name":"a"}}}}}}"#,
        ),
        event = event,
        namespace = namespace,
        decoy = DECOY,
        about = about,
    )
}

pub(crate) fn partial(namespace: &str) -> String {
    let metadata = format!(r#"{{"name":"a","namespace":"{namespace}"}}"#);
    let kind = r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#;
    format!(r#"{{"type":"ADDED","object":{{{kind},"metadata":{metadata}}}}}"#)
}

/// An event of a watch of Tables: `columns` is the value of `columnDefinitions`.
pub(crate) fn table(namespace: &str, columns: &str) -> String {
    let metadata = format!(r#"{{"name":"a","namespace":"{namespace}"}}"#);
    let object = format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{metadata}}}"#);
    let rows = format!(r#"[{{"cells":["5s"],"object":{object}}}]"#);
    let kind = r#""kind":"Table","apiVersion":"meta.k8s.io/v1""#;
    format!(r#"{{"type":"ADDED","object":{{{kind},"columnDefinitions":{columns},"rows":{rows}}}}}"#)
}

/// A bookmark. Without a `version` if it is empty.
pub(crate) fn bookmark(version: &str, ends_initial_events: bool) -> String {
    let version = if version.is_empty() { String::new() } else { format!(r#""resourceVersion":"{version}","#) };
    let annotations = if ends_initial_events { r#"{"k8s.io/initial-events-end":"true"}"# } else { r#"{"a":"b"}"# };
    let metadata = format!(r#"{{{version}"annotations":{annotations}}}"#);
    format!(r#"{{"type":"BOOKMARK","object":{{"kind":"Event","apiVersion":"v1","metadata":{metadata}}}}}"#)
}

pub(crate) fn error(namespace: &str) -> String {
    let details = format!(r#"{{"name":"{namespace}","kind":"namespaces"}}"#);
    format!(
        concat!(
            r#"{{"type":"ERROR","object":{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","#,
            r#""message":"too old","reason":"Expired","details":{},"code":410}}}}"#,
        ),
        details
    )
}

/// A name of a namespace, as the text of a JSON string.
fn namespace() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("edge-ke".to_owned()),
        1 => Just("\\u0065dge-ke".to_owned()),
        2 => "(edge-hz|kube-system)",
        2 => "new-[a-c]-ke",
        1 => "\\\\u006eew-[a-c]-ke",
        2 => "gone-[a-c]-(ke|hz)",
        1 => "(new|gone)-a{20}",
        1 => Just("Not_a_label".to_owned()),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = String> {
    let columns = prop_oneof!["null", "\\[\\]", "\\[\\{\"name\":\"[AB]\"\\}\\]"];
    let event = prop_oneof![
        5 => ("(ADDED|MODIFIED|DELETED|SOMETHING_NEW)", namespace(), namespace())
            .prop_map(|(event, namespace, about)| change(&event, &namespace, &about)),
        2 => namespace().prop_map(|namespace| partial(&namespace)),
        3 => (namespace(), columns).prop_map(|(namespace, columns)| table(&namespace, &columns)),
        2 => ("[0-9]{0,3}", any::<bool>()).prop_map(|(version, ends)| bookmark(&version, ends)),
        1 => Just(r#"{"type":"BOOKMARK"}"#.to_owned()),
        1 => namespace().prop_map(|namespace| error(&namespace)),
    ];
    // With white space, which also changes the text of the decoy.
    (event, any::<bool>()).prop_map(|(event, loose)| if loose { event.replace("\":", "\" :  ") } else { event })
}
