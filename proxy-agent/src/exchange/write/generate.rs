//! Generates names for Namespaces (`metadata.generateName`).
//!
//! The host cannot generate them, because it would append the random suffix after the name of the virtual cluster.

use kube_wire::Status;
use rewrite::protobuf::ObjectName;
use rewrite::{Mapping, VirtualNamespace};

use crate::refusal::{DryRunScope, Refusal, Unmapped};

/// `maxGeneratedNameLength` in apiserver's `pkg/storage/names/generate.go`.
const LONGEST_BASE: usize = 58;
/// `randomLength`, ibidem.
const SUFFIX: usize = 5;
/// The alphabet without vowels and similar characters, so that the suffix is never a word (apimachinery's
/// `pkg/util/rand/rand.go`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The maximum number of attempts if generated names are taken (`maxNameGenerationCreateAttempts` in apiserver's
/// `pkg/registry/generic/registry/store.go`).
const ATTEMPTS: usize = 8;

/// Generates the name of a new Namespace from a prefix. If all attempts are taken, the host refuses the last one.
pub(crate) fn name(mapping: &Mapping, own: &ObjectName) -> Result<Option<VirtualNamespace>, Refusal> {
    if !own.name.is_empty() || own.generate_name.is_empty() {
        return Ok(None);
    }
    let bad = |_| {
        Unmapped::refusal(
            Status::bad_request("metadata.generateName is not a valid prefix of the name of a namespace"),
            DryRunScope::KubeApiserver,
        )
    };
    let mut made = None;
    for _ in 0..ATTEMPTS {
        let name = VirtualNamespace::new(&with_suffix(&own.generate_name)).map_err(bad)?;
        let is_free = mapping.host(&name).is_ok_and(|host| mapping.member(host.as_ref()).is_none());
        made = Some(name);
        if is_free {
            break;
        }
    }
    Ok(made)
}

/// A random name with this prefix.
pub(crate) fn with_suffix(base: &str) -> String {
    // Text that is not ASCII is not a valid name either.
    let mut name: String = base.chars().take(LONGEST_BASE).collect();
    name.extend((0..SUFFIX).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])));
    name
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rewrite::Index;

    use super::*;

    fn made(name: &str, generate_name: &str) -> Result<Option<String>, Refusal> {
        let mapping = Mapping::new("ke".parse().unwrap(), Arc::new(Index::new()));
        let own = ObjectName { name: name.to_owned(), generate_name: generate_name.to_owned() };
        super::name(&mapping, &own).map(|name| name.map(|name| name.to_string()))
    }

    #[test]
    fn names_are_made_as_an_api_server_makes_them() {
        let name = made("", "run-").unwrap().unwrap();
        let suffix = name.strip_prefix("run-").unwrap();
        assert!(suffix.len() == 5 && suffix.bytes().all(|byte| ALPHABET.contains(&byte)), "{name}");
        assert_ne!(made("", "run-").unwrap(), made("", "run-").unwrap());
        let long = "a".repeat(80);
        assert!(made("", &long).unwrap().is_some_and(|name| name.len() == 63 && name.starts_with(&long[..58])));
        for (name, generate_name) in [("a", "run-"), ("", ""), ("A", "run-")] {
            assert!(made(name, generate_name).unwrap().is_none(), "{name:?} {generate_name:?}");
        }
        for bad in ["Run-", "-", "ä-"] {
            assert!(made("", bad).is_err(), "{bad:?}");
        }
    }
}
