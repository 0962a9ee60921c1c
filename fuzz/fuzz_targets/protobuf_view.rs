//! Answers in protobuf: hostile bytes end in an error, what is shown can be read, and the pieces make no difference.
#![no_main]

use atoll_fuzz::{kind_and_rest, pieces, view};
use bytes::Bytes;
use kube_wire::envelope::Envelope;
use libfuzzer_sys::fuzz_target;
use rewrite::protobuf::ObjectMetadata;
use rewrite::schema::program_for;
use rewrite::view::{Filter, ProtoListStream, ProtoWatchStream, Verdict};

fn listed(group: &str, resource: &str, chunks: &[Bytes]) -> Option<Bytes> {
    let mut list = ProtoListStream::new(view(), program_for(group, "v1", resource), Filter::ByNamespace);
    chunks.iter().all(|chunk| list.push(chunk).is_ok()).then(|| Some(list.finish().ok()?.concat().into())).flatten()
}

fn watched(group: &str, resource: &str, chunks: &[Bytes]) -> Option<Vec<u8>> {
    let program = program_for(group, "v1", resource);
    let mut watch = ProtoWatchStream::new(view(), &program, Filter::ByNamespace).ok()?;
    let mut out: Vec<Bytes> = Vec::new();
    let ended_well = chunks.iter().all(|chunk| watch.push(chunk, &mut out).is_ok()) && watch.finish().is_ok();
    ended_well.then(|| out.concat())
}

fuzz_target!(|data: &[u8]| {
    let Some((group, resource, body)) = kind_and_rest(data) else { return };
    let _ = ObjectMetadata::of(&body);
    let program = program_for(group, "v1", resource);
    for filter in [Filter::ByNamespace, Filter::ByName, Filter::Everything] {
        let mut out: Vec<Bytes> = Vec::new();
        match view().protobuf(&program, filter, &body, &mut out) {
            Ok(Verdict::Shown) => assert!(Envelope::decode(&out.concat()).is_ok()),
            Ok(Verdict::Foreign | Verdict::Unselected | Verdict::Left) | Err(_) => {
                assert!(out.is_empty(), "what is not shown went out");
            }
        }
    }
    let (whole, cut) = ([body.clone()], pieces(&body));
    assert_eq!(listed(group, resource, &whole), listed(group, resource, &cut));
    assert_eq!(watched(group, resource, &whole), watched(group, resource, &cut));
});
