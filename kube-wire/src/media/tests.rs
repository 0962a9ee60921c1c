use proptest::prelude::*;

use super::*;

const TABLES: &str =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

fn json_only(accept: &str) -> Result<(String, Vec<Form>), NotAcceptable> {
    Accept::parse([accept]).json_only().map(|only| (only.header().to_owned(), only.forms().to_vec()))
}

#[test]
fn json_is_kept_and_other_types_are_removed() {
    use Form::*;
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                    application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    for (accept, header, forms) in [
        ("application/json", "application/json", vec![Object]),
        ("", "application/json", vec![Object]),
        ("application/json, */*", "application/json", vec![Object]),
        ("*/*", "application/json", vec![Object]),
        ("*", "application/json", vec![Object]),
        ("application/*;q=0.5", "application/json;q=0.5", vec![Object]),
        ("application/vnd.kubernetes.protobuf,application/json", "application/json", vec![Object]),
        ("application/vnd.kubernetes.protobuf, */*", "application/json", vec![Object]),
        ("application/cbor;q=1, application/json;q=0.9", "application/json;q=0.9", vec![Object]),
        ("application/json;stream=watch", "application/json;stream=watch", vec![Object]),
        ("Application/JSON", "application/json", vec![Object]),
        (TABLES, TABLES, vec![Table, Object]),
        (metadata, metadata.split_once(',').unwrap().1, vec![PartialObjectMetadataList, Object]),
        (discovery, discovery, vec![ApiGroupDiscoveryList, Object]),
        ("application/json;as=Cake;v=v1;g=meta.k8s.io,application/json", "application/json", vec![Object]),
    ] {
        assert_eq!(json_only(accept), Ok((header.to_owned(), forms)), "{accept}");
    }
}

#[test]
fn no_remaining_type_is_not_acceptable() {
    for accept in [
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
        "application/cbor",
        "text/plain",
        "application/json;q=0",
        "application/json;q=0.000",
        "application/json;as=Cake;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
    ] {
        assert_eq!(json_only(accept), Err(NotAcceptable), "{accept}");
    }
}

#[test]
fn protobuf_must_be_requested() {
    let only = |accept: &str| Accept::parse([accept]).protobuf_only().map(|only| only.header().to_owned());
    let watch = "application/vnd.kubernetes.protobuf;stream=watch,application/vnd.kubernetes.protobuf";
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    for (accept, header) in [
        ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
        ("application/yaml, application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
        ("Application/VND.kubernetes.protobuf, */*", "application/vnd.kubernetes.protobuf"),
        (watch, watch),
        (metadata, metadata),
    ] {
        assert_eq!(only(accept), Ok(header.to_owned()), "{accept}");
    }
    for accept in ["", "*/*", "application/json", "application/vnd.kubernetes.protobuf;q=0"] {
        assert_eq!(only(accept), Err(NotAcceptable), "{accept}");
    }
}

#[test]
fn the_best_comes_first() {
    let accept =
        Accept::parse(["*/*;q=1, text/plain;q=0.2", "application/json;q=0.2, application/yaml;q=0.85,nonsense"]);
    let ordered: Vec<_> = accept.by_preference().iter().map(|clause| clause.essence()).collect();
    assert_eq!(ordered, ["*/*", "application/yaml", "text/plain", "application/json"]);
    assert_eq!(Accept::parse(["application/json; stream=watch"]).clauses()[0].param("stream"), Some("watch"));
}

#[test]
fn refusals_are_written_in_the_clients_encoding() {
    use StatusFormat::*;
    for (accept, format) in [
        ("", Json),
        ("text/plain", Json),
        ("application/vnd.kubernetes.protobuf", Protobuf),
        ("application/vnd.kubernetes.protobuf,application/json", Protobuf),
        ("application/vnd.kubernetes.protobuf, */*", Protobuf),
        ("application/vnd.kubernetes.protobuf;q=0.5,application/json", Json),
        ("application/json,application/vnd.kubernetes.protobuf", Json),
        ("application/cbor,application/vnd.kubernetes.protobuf", Protobuf),
    ] {
        assert_eq!(Accept::parse([accept]).status_format(), format, "{accept}");
    }
}

#[test]
fn types_of_bodies_are_recognised() {
    for (text, body) in [
        ("application/json", BodyType::Object(Encoding::Json)),
        ("application/json; charset=utf-8", BodyType::Object(Encoding::Json)),
        ("application/vnd.kubernetes.protobuf", BodyType::Object(Encoding::Protobuf)),
        ("application/yaml", BodyType::Object(Encoding::Yaml)),
        ("application/cbor", BodyType::Object(Encoding::Cbor)),
    ] {
        assert_eq!(BodyType::of_object(Some(text)), Ok(body), "{text}");
        assert!(BodyType::of_patch(Some(text)).is_err(), "{text}");
    }
    assert_eq!(BodyType::of_object(None), Ok(BodyType::Object(Encoding::Json)));
    assert!(BodyType::of_object(Some("application/cbor-seq")).is_err());
    assert!(BodyType::of_object(Some("application/x-www-form-urlencoded")).is_err());
    for patch in [
        BodyType::JsonPatch,
        BodyType::MergePatch,
        BodyType::StrategicMergePatch,
        BodyType::ApplyYaml,
        BodyType::ApplyCbor,
    ] {
        assert_eq!(BodyType::of_patch(Some(patch.media_type())), Ok(patch));
        assert!(BodyType::of_object(Some(patch.media_type())).is_err());
    }
    assert!(BodyType::of_patch(None).is_err());
    assert_eq!(response_encoding("application/json;stream=watch"), Some(Encoding::Json));
    assert_eq!(response_encoding("text/plain; charset=utf-8"), None);
}

#[test]
fn json_is_allowed_if_some_line_allows_it() {
    for lines in [
        &[][..],
        &["", " "],
        &["x", "*/*;q=0.1"],
        &["application/cbor", "application/json;as=Table;v=v1;g=meta.k8s.io"],
    ] {
        assert!(Accept::allows_json(lines.iter().copied()), "{lines:?}");
        assert!(Accept::parse(lines.iter().copied()).json_only().is_ok(), "{lines:?}");
    }
    for lines in [&["x"][..], &["", "application/json;q=0"], &["application/json;as=X;v=v1;g=y", "application/yaml"]] {
        assert!(!Accept::allows_json(lines.iter().copied()), "{lines:?}");
        assert!(Accept::parse(lines.iter().copied()).json_only().is_err(), "{lines:?}");
    }
}

proptest! {
    #[test]
    fn the_upstream_header_is_json_only(accept in "((application/(json|yaml|cbor|vnd.kubernetes.protobuf|\\*)|\\*/\\*|x)(;(as=Table|v=v1|g=meta.k8s.io|q=0\\.[0-9]|stream=watch|z)){0,4},? ?){0,4}") {
        let json_only = Accept::parse([accept.as_str()]).json_only();
        prop_assert_eq!(Accept::allows_json([accept.as_str()]), json_only.is_ok());
        let Ok(only) = json_only else { return Ok(()) };
        let upstream = Accept::parse([only.header()]);
        for clause in upstream.clauses() {
            prop_assert_eq!(clause.encoding(), Some(Encoding::Json));
        }
        // A second restriction changes nothing.
        let again = upstream.json_only().unwrap();
        prop_assert_eq!(again.header(), only.header());
        prop_assert_eq!(again.forms(), only.forms());
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = Accept::parse([text.as_str()]).json_only();
        let _ = BodyType::of_object(Some(&text));
    }
}
