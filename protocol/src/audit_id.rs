//! The ID of a request in the host's audit log, in a short form.
//!
//! kube-apiserver sends it with each response as a UUID of 36 characters (`HeaderAuditID` in apiserver's
//! `pkg/apis/audit/types.go`). It is new each time, so HPACK cannot make it short. In base64, its 16 bytes are 22 characters.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the ID.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// The ID in base64 without padding (RFC 4648, section 5). Only the agent sets it, never a host.
pub const SHORT: HeaderName = HeaderName::from_static("x-atoll-audit-id");

/// The length of a UUID as text (RFC 9562, section 4).
const LENGTH: usize = 36;

/// Makes the ID short, if it is a UUID in lower case.
pub fn shorten(response: &mut HeaderMap) {
    let mut ids = response.get_all(AUDIT_ID).iter();
    let id = ids.next().and_then(|id| read(id.as_bytes())).filter(|_| ids.next().is_none());
    let Some(id) = id else { return };
    let text = BASE64_URL_SAFE_NO_PAD.encode(id);
    response.remove(AUDIT_ID);
    response.insert(SHORT, HeaderValue::try_from(text).expect("base64 is a header value"));
}

/// The inverse of [`shorten`]. Removes a short ID that is invalid.
pub fn restore(response: &mut HeaderMap) {
    let Some(short) = response.remove(SHORT) else { return };
    let id = BASE64_URL_SAFE_NO_PAD.decode(short.as_bytes()).ok().and_then(|id| <[u8; 16]>::try_from(id).ok());
    if let Some(id) = id {
        response.insert(AUDIT_ID, HeaderValue::try_from(write(id)).expect("a UUID is a header value"));
    }
}

fn read(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == LENGTH)?;
    let id = u128::from_str_radix(&text.replace('-', ""), 16).ok()?.to_be_bytes();
    (write(id) == text).then_some(id)
}

fn write(id: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(id));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_uuid_is_short_on_the_tunnel() {
        let original = head(AUDIT_ID, "31489de6-5599-4322-90c1-d31d70fee53c");
        let mut response = original.clone();
        shorten(&mut response);
        assert_eq!(response, head(SHORT, "MUid5lWZQyKQwdMdcP7lPA"));
        restore(&mut response);
        assert_eq!(response, original);
    }

    #[test]
    fn other_ids_stay() {
        for id in ["", "chosen", "31489DE6-5599-4322-90C1-D31D70FEE53C", "31489de655994322-90c1-d31d70fee53c-", "a-b"] {
            let mut response = head(AUDIT_ID, id);
            shorten(&mut response);
            assert_eq!(response, head(AUDIT_ID, id));
        }
    }

    proptest! {
        #[test]
        fn any_id_survives(id in any::<[u8; 16]>(), other in "[0-9a-f-]{34,38}", short in "[ -~]{0,30}") {
            for id in [write(id), other] {
                let original = head(AUDIT_ID, &id);
                let mut response = original.clone();
                shorten(&mut response);
                restore(&mut response);
                prop_assert_eq!(response, original);
            }
            let mut response = head(SHORT, &short);
            restore(&mut response);
            prop_assert!(!response.contains_key(SHORT));
        }
    }
}
