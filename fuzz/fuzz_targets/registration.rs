//! What agents and proxy-servers say to one another before they trust each other.
#![no_main]

use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use protocol::{Acceptance, Identity, Registration};

fuzz_target!(|data: &[u8]| {
    if let Ok(registration) = Registration::decode(data) {
        let again = Registration::decode(&registration.encode()).expect("what was written is read");
        assert_eq!(again, registration);
    }
    if let Some(acceptance) = Acceptance::decode(data) {
        assert_eq!(Acceptance::decode(acceptance.encode().as_bytes()), Some(acceptance));
    }
    let _ = protocol::Refusal::decode(http::StatusCode::FORBIDDEN, data);
    let mut headers = HeaderMap::new();
    for (line, name) in data.split(|byte| *byte == b'\n').zip(["x-atoll-user", "x-atoll-groups", "x-atoll-uid"]) {
        if let Ok(value) = http::HeaderValue::from_bytes(line) {
            headers.insert(name, value);
        }
    }
    if let Ok(Some(identity)) = Identity::take(&mut headers) {
        identity.write(&mut headers);
        assert_eq!(Identity::take(&mut headers), Ok(Some(identity)));
    }
});
