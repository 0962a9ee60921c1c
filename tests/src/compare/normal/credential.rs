//! Certificates, tokens and digests.

use super::run;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Base64 of "-----BEGIN ", as in the data of a Secret.
const ENCODED: &str = "LS0tLS1CRUdJTi";

/// Base64 of `{"` without its last bits. Every JSON Web Token begins with it (RFC 7515).
const JSON: &str = "eyJ";

/// Base64 of [`JSON`], as in the data of a Secret.
const ENCODED_JSON: &str = "ZXlK";

/// Replaces each certificate by `CERTIFICATE`, also over several lines.
pub(super) fn certificates(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let Some((_, after)) = after.split_once(END) else { break };
        result.push_str(before);
        result.push_str("CERTIFICATE");
        rest = after;
    }
    result + rest
}

/// Replaces tokens, encoded certificates and digests by `TOKEN`, `CERTIFICATE` and `DIGEST`.
pub(super) fn tokens(text: &str) -> String {
    // A continue token can have any form.
    let text = match text.split_once("\"continue\": \"") {
        Some((before, _)) => &format!("{before}\"continue\": \"TOKEN\","),
        None => text,
    };
    let in_token = |char: char| char.is_ascii_alphanumeric() || "+/=_-.".contains(char);
    let text = run::replace(text, in_token, |_, run, _| {
        let found = [(ENCODED, "CERTIFICATE"), (JSON, "TOKEN"), (ENCODED_JSON, "TOKEN")];
        let (at, word) = found.into_iter().find_map(|(mark, word)| run.find(mark).map(|at| (at, word)))?;
        (run.len() - at > 20).then(|| format!("{}{word}", &run[..at]))
    });
    // Digests, and the suffixes of the names of events. Other names have no such long words of hexadecimal digits.
    run::replace(
        &text,
        |char| char.is_ascii_alphanumeric(),
        |_, run, _| (run.len() >= 14 && run.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| "DIGEST".to_owned()),
    )
}
