//! What must be done about the Secret of a VirtualCluster.

use super::secret::{KubeconfigSecret, Wanted};
use crate::declared::object::Declared;
use ops::date::Moment;

/// What must be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before this time. The certificate expires at the second one.
    Keep { renewal: Moment, expiry: Moment },
    /// Store a new kubeconfig. The agent must not wait if nobody can use the stored one.
    Issue,
    /// Nothing: the Secret with this name does not belong to the VirtualCluster.
    Foreign,
    /// Delete the Secret.
    Delete,
    /// Nothing, and there is no Secret.
    Nothing,
}

/// Compares what an object asks for with the Secret that exists.
pub(super) fn step(
    object: &Declared,
    wanted: Option<Wanted<'_>>,
    found: Option<&KubeconfigSecret>,
    now: Moment,
) -> Step {
    match (wanted, found) {
        (None, Some(secret)) if secret.is_of(object) => Step::Delete,
        (None, _) => Step::Nothing,
        (Some(_), None) => Step::Issue,
        (Some(_), Some(secret)) if !secret.is_of(object) => Step::Foreign,
        (Some(wanted), Some(secret)) => match (secret.renewal(), secret.expiry()) {
            (Some(renewal), Some(expiry)) if secret.is_for(&wanted) && now < renewal => Step::Keep { renewal, expiry },
            _ => Step::Issue,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use ops::secret::Secret;
    use protocol::user_certificate::User;
    use serde_json::{Value, json};

    use super::super::issuer::Issued;
    use super::super::secret::secret;
    use super::*;

    fn at(seconds: u64) -> Moment {
        (SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).into()
    }

    fn object(uid: &str) -> Declared {
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": uid}})).unwrap()
    }

    fn wanted(user: &User) -> Option<Wanted<'_>> {
        Some(Wanted { user, enrolled: at(5) })
    }

    fn user(name: &str) -> User {
        User { user: name.to_owned(), groups: vec!["dev".to_owned()] }
    }

    fn stored(change: impl FnOnce(&mut Value)) -> KubeconfigSecret {
        let issued = Issued { kubeconfig: Secret::from("x".to_owned()), renewal: at(100), expiry: at(150) };
        let mut stored = secret(&object("u"), "atoll-system", &wanted(&user("jane")).unwrap(), &issued);
        change(&mut stored);
        serde_json::from_value(stored).unwrap()
    }

    #[test]
    fn a_secret_is_kept_until_its_renewal() {
        let keep = Step::Keep { renewal: at(100), expiry: at(150) };
        let of = |object: &Declared, name: &str, seconds| {
            step(object, wanted(&user(name)), Some(&stored(|_| {})), at(seconds))
        };
        assert_eq!(of(&object("u"), "jane", 99), keep);
        assert_eq!(of(&object("u"), "jane", 100), Step::Issue);
        assert_eq!(of(&object("u"), "john", 99), Step::Issue);
        assert_eq!(of(&object("other"), "jane", 99), Step::Foreign, "of a deleted object with this name");
        assert_eq!(step(&object("u"), wanted(&user("jane")), None, at(0)), Step::Issue);
        let jane = user("jane");
        let by = |enrolled| Some(Wanted { user: &jane, enrolled });
        assert_eq!(step(&object("u"), by(at(6)), Some(&stored(|_| {})), at(10)), Step::Issue);
        assert_eq!(step(&object("u"), by(at(4)), Some(&stored(|_| {})), at(10)), keep, "of another replica");
    }

    #[test]
    fn a_damaged_secret_is_replaced() {
        for damage in [
            (|secret: &mut Value| secret["data"] = json!({})) as fn(&mut Value),
            |secret| secret["data"] = Value::Null,
            |secret| secret["metadata"]["annotations"] = json!({}),
            |secret| secret["metadata"]["annotations"]["atoll.dev/kubeconfig-renewal"] = json!("soon"),
        ] {
            let damaged = std::panic::catch_unwind(|| stored(damage));
            // The API server omits empty fields, and never sends null.
            let Ok(damaged) = damaged else { continue };
            assert_eq!(step(&object("u"), wanted(&user("jane")), Some(&damaged), at(1)), Step::Issue);
        }
        let foreign = stored(|secret| secret["metadata"]["ownerReferences"] = json!([]));
        assert_eq!(step(&object("u"), wanted(&user("jane")), Some(&foreign), at(1)), Step::Foreign);
    }

    #[test]
    fn only_the_own_secret_is_deleted() {
        assert_eq!(step(&object("u"), None, Some(&stored(|_| {})), at(1)), Step::Delete);
        assert_eq!(step(&object("other"), None, Some(&stored(|_| {})), at(1)), Step::Nothing);
        assert_eq!(step(&object("u"), None, None, at(1)), Step::Nothing);
    }
}
