//! Bodies that no serialiser of Kubernetes writes, but that its decoder accepts.

use super::*;

/// A message of these fields.
fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = Writer::new();
    for (number, bytes) in fields {
        message.bytes(*number, bytes);
    }
    message.into_bytes()
}

fn map(kind: &str, raw: &[u8]) -> Result<Vec<u8>, Refusal> {
    let body = Envelope { api_version: "v1", kind, raw, ..Envelope::default() }.encode();
    let request = Request::new(mapping()).in_namespace("edge".parse().unwrap()).with_guard(guard());
    let mut out: Vec<Bytes> = Vec::new();
    request.map_protobuf(proto_program_for("", "v1", kind).unwrap(), &body.into(), &mut out)?;
    let out = out.concat();
    Ok(Envelope::decode(&out).unwrap().raw.to_vec())
}

#[track_caller]
fn refused(kind: &str, raw: &[u8]) -> String {
    map(kind, raw).unwrap_err().to_string()
}

#[test]
fn duplicate_fields_are_refused() {
    let edge = message(&[(3, b"edge")]);
    assert_eq!(refused("ConfigMap", &message(&[(1, &edge), (1, b"")])), "metadata: duplicate field");
    let twice = message(&[(3, b"edge"), (3, b"edge-hz")]);
    assert_eq!(refused("ConfigMap", &message(&[(1, &twice)])), "metadata.namespace: duplicate field");
    let location = message(&[(1, b"location"), (2, b"beijing")]);
    let spec = message(&[(7, &location), (7, &location)]);
    assert_eq!(refused("Pod", &message(&[(2, &spec)])), "spec.nodeSelector.location: duplicate field");
    for entry in [
        message(&[(1, b"location"), (2, b"beijing"), (2, b"hangzhou")]),
        message(&[(1, b"disk"), (2, b"hangzhou"), (1, b"location")]),
    ] {
        let spec = message(&[(7, &entry)]);
        assert_eq!(refused("Pod", &message(&[(2, &spec)])), "spec.nodeSelector: duplicate field");
    }
    let reference = message(&[(1, b"Pod"), (3, b"edge"), (1, b"Namespace")]);
    assert_eq!(refused("Event", &message(&[(2, &reference)])), "involvedObject.kind: duplicate field");
    let named = message(&[(1, b"new"), (1, b"edge")]);
    assert_eq!(refused("Namespace", &message(&[(1, &named)])), "metadata.name: duplicate field");
}

#[test]
fn fields_have_the_wire_type_of_the_schema() {
    let mut metadata = Writer::new();
    metadata.varint(3, 7);
    let metadata = metadata.into_bytes();
    assert!(refused("ConfigMap", &message(&[(1, &metadata)])).contains("wrong type"));
    // Go ignores wire types in the entries of a map: here it would read `location`.
    let mut entry = b"\x08\x08location".to_vec();
    entry.extend(message(&[(2, b"hangzhou")]));
    assert!(refused("Pod", &message(&[(2, &message(&[(7, &entry)]))])).contains("wrong type"));
    for malformed in [&b"\x0b\x0c"[..], b"\x0a\x05", b"\x0f", b"\0"] {
        let refusal = map("ConfigMap", malformed).unwrap_err();
        assert!(matches!(refusal.reason, Reason::Envelope(EnvelopeError::Wire(_))), "{malformed:?}");
    }
    // Messages that are not entered are validated by the host.
    assert_eq!(map("ConfigMap", &message(&[(3, b"\x0b")])), Ok(message(&[(3, b"\x0b")])));
}

#[test]
fn overlong_varints_are_accepted() {
    // Field 1, length 6, then field 3, length 4; every number in more bytes than it needs.
    let long = b"\x8a\x00\x88\x80\x00\x9a\x80\x00\x84\x00edge"[..].to_vec();
    let metadata = map("ConfigMap", &[&long[..2], b"\x89\x80\x00", &long[5..]].concat()).unwrap();
    assert_eq!(metadata, b"\x8a\x00\x0b\x9a\x80\x00\x07edge-ke");
}

#[test]
fn lengths_grow_with_their_content() {
    // 120 bytes of metadata become 123, and with the 20 around them two bytes of length.
    let metadata = message(&[(1, &[b'a'; 112]), (3, b"edge")]);
    let mapped = map("ConfigMap", &message(&[(1, &metadata), (2, b"")])).unwrap();
    assert_eq!(mapped, message(&[(1, &message(&[(1, &[b'a'; 112]), (3, b"edge-ke")])), (2, b"")]));
}

#[test]
fn an_empty_map_entry_is_an_entry() {
    let spec = message(&[(7, b"")]);
    assert!(map("Pod", &message(&[(2, &spec)])).is_ok());
    let location = message(&[(7, &message(&[(1, b"location")]))]);
    assert_eq!(
        refused("Pod", &message(&[(2, &location)])),
        "spec.nodeSelector[location]: Invalid value: \"\": nodes of this cluster have \"beijing\""
    );
}

#[test]
fn the_envelope_must_match_the_request() {
    let program = proto_program_for("apps", "v1", "deployments").unwrap();
    let map = |envelope: &Envelope<'_>| {
        Request::new(mapping()).map_protobuf(program, &envelope.encode().into(), &mut Vec::<Bytes>::new())
    };
    let right = Envelope { api_version: "apps/v1", kind: "Deployment", ..Envelope::default() };
    for envelope in [right, Envelope { api_version: "", kind: "", ..right }] {
        assert_eq!(map(&envelope), Ok(Report::default()));
    }
    for envelope in [
        Envelope { api_version: "v1", ..right },
        Envelope { api_version: "apps/v1beta1", ..right },
        Envelope { kind: "DaemonSet", ..right },
    ] {
        let refusal = map(&envelope).unwrap_err();
        assert_eq!(refusal.to_string(), "the object in the body is not apps/v1 Deployment, as the request says");
    }
    for envelope in
        [Envelope { content_type: "application/json", ..right }, Envelope { content_encoding: "gzip", ..right }]
    {
        assert_eq!(map(&envelope).unwrap_err().reason, Reason::Wrapped);
    }
    let magic = Request::new(mapping()).map_protobuf(program, &Bytes::from("{}"), &mut Vec::<Bytes>::new());
    assert_eq!(magic.unwrap_err().reason, Reason::Envelope(EnvelopeError::Magic));
}

#[test]
fn embedded_json_is_read_strictly() {
    let revision = |json: &[u8]| {
        let raw = message(&[(2, &message(&[(1, json)]))]);
        let body = Envelope { raw: &raw, ..Envelope::default() }.encode();
        let request = Request::new(mapping()).with_guard(guard());
        let program = proto_program_for("apps", "v1", "ControllerRevision").unwrap();
        request.map_protobuf(program, &body.into(), &mut Vec::<Bytes>::new()).map_err(|refusal| refusal.to_string())
    };
    assert!(revision(b"").is_ok());
    assert!(revision(b"{}").is_ok());
    assert!(revision(b"k8s\0").unwrap_err().starts_with("data: malformed JSON"));
    assert!(
        revision(br#"{"spec":{"template":{"spec":{"nodeSelector":{"location":"hangzhou"}}}}}"#)
            .unwrap_err()
            .starts_with("data.spec.template.spec.nodeSelector[location]: ")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_input_panics(bytes: Vec<u8>, kind in prop::sample::select(vec!["Pod", "Namespace", "Secret", "Binding"])) {
        let _ = map(kind, &bytes);
        let request = Request::new(mapping());
        let program = proto_program_for("", "v1", kind).unwrap();
        let _ = request.map_protobuf(program, &[&MAGIC[..], &bytes].concat().into(), &mut Vec::<Bytes>::new());
    }

    #[test]
    fn no_damaged_object_panics(
        sample in 0..SAMPLES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let sample = &SAMPLES[sample];
        let mut body = sample.virtual_proto.to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if is_cut {
            body.truncate(cut.index(body.len()));
        }
        // The output has the same framing as the input, so Kubernetes decodes it or reports the client's error.
        if let Ok((mapped, _)) = sample.map_proto(&sample.request(mapping()), &body.into()) {
            prop_assert!(Envelope::decode(&mapped).is_ok());
        }
    }
}
