//! Paths and queries: what is understood is built again as something that is understood the same way, and never as a
//! path that steps out.
#![no_main]

use http::Method;
use kube_wire::query::{ListOptions, WriteOptions};
use kube_wire::{RequestInfo, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let (path, query) = data.split_once('?').map_or((data, None), |(path, query)| (path, Some(query)));
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let Ok(info) = RequestInfo::parse(&method, path, query) else { continue };
        let _ = ListOptions::parse(info.query());
        let _ = WriteOptions::parse(info.query());
        let Target::Resource(request) = info.target() else { continue };
        let built = request.path().build();
        assert!(!built.split('/').any(|segment| matches!(segment, "." | "..")), "{built}");
        let again = RequestInfo::parse(&method, &built, query).expect("what was built is understood");
        let Target::Resource(again) = again.target() else { panic!("{built} is no resource any more") };
        assert_eq!(
            (again.verb(), again.group(), again.version(), again.resource(), again.subresource()),
            (request.verb(), request.group(), request.version(), request.resource(), request.subresource()),
            "{built}"
        );
        assert_eq!((again.namespace(), again.path_name()), (request.namespace(), request.path_name()), "{built}");
    }
});
