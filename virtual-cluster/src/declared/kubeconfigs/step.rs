//! What must be done about the Secret of a VirtualCluster.

use std::time::Duration;

use ops::date::{DAY, Moment};

use super::secret::{KubeconfigSecret, Wanted};
use crate::declared::object::Declared;

/// More than the longest lifetime of a certificate that a proxy-server can be configured to issue.
const LONGEST: Duration = DAY.saturating_mul(366);

/// What must be done about a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Nothing before this time. The certificate expires at the second one.
    Keep { renewal: Moment, expiry: Moment },
    /// Store a new kubeconfig for this user.
    Issue(Wanted<'a>),
    /// Nothing: the Secret with this name does not belong to the VirtualCluster.
    Foreign,
    /// Delete the Secret.
    Delete { uid: &'a str },
    /// Nothing, and there is no Secret.
    Nothing,
}

/// Compares what an object asks for with the Secret that exists.
pub(super) fn step<'a>(
    object: &Declared,
    wanted: Option<Wanted<'a>>,
    found: Option<&'a KubeconfigSecret>,
    now: Moment,
) -> Step<'a> {
    match (wanted, found) {
        (None, Some(secret)) if secret.is_of(object) => Step::Delete { uid: &secret.metadata.uid },
        (None, _) => Step::Nothing,
        (Some(wanted), None) => Step::Issue(wanted),
        (Some(_), Some(secret)) if !secret.is_of(object) => Step::Foreign,
        (Some(wanted), Some(secret)) => match (secret.renewal(), secret.expiry()) {
            (Some(renewal), Some(expiry))
                if secret.is_for(&wanted) && now < renewal && !is_implausible(expiry, now) =>
            {
                Step::Keep { renewal, expiry }
            }
            _ => Step::Issue(wanted),
        },
    }
}

// === impl Step ===

impl Step<'_> {
    /// Whether the Secret is right, so that no certificate is needed.
    pub(super) fn is_keep(self) -> bool {
        matches!(self, Self::Keep { .. })
    }
}

/// Whether no proxy-server issues such a certificate. Somebody else has created the Secret, and the agent would never renew it.
fn is_implausible(expiry: Moment, now: Moment) -> bool {
    expiry.time().duration_since(now.time()).is_ok_and(|rest| rest > LONGEST)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

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

    fn wanted(user: &User) -> Wanted<'_> {
        Wanted { user, enrolled: at(5) }
    }

    fn user(name: &str) -> User {
        User { name: name.to_owned(), groups: vec!["dev".to_owned()] }
    }

    fn stored(change: impl FnOnce(&mut Value)) -> KubeconfigSecret {
        let issued = Issued { kubeconfig: Secret::from("x".to_owned()), renewal: at(100), expiry: at(150) };
        let mut stored = secret(&object("u"), "atoll-system", &wanted(&user("jane")), &issued);
        change(&mut stored);
        serde_json::from_value(stored).unwrap()
    }

    fn is_issued(step: Step<'_>) -> bool {
        matches!(step, Step::Issue(_))
    }

    #[test]
    fn a_secret_is_kept_until_its_renewal() {
        let (jane, john, secret) = (user("jane"), user("john"), stored(|_| {}));
        let keep = Step::Keep { renewal: at(100), expiry: at(150) };
        let (own, other) = (object("u"), object("other"));
        assert_eq!(step(&own, Some(wanted(&jane)), Some(&secret), at(99)), keep);
        assert!(is_issued(step(&own, Some(wanted(&jane)), Some(&secret), at(100))));
        assert!(is_issued(step(&own, Some(wanted(&john)), Some(&secret), at(99))));
        assert_eq!(
            step(&other, Some(wanted(&jane)), Some(&secret), at(99)),
            Step::Foreign,
            "of a deleted object with this name"
        );
        assert!(is_issued(step(&own, Some(wanted(&jane)), None, at(0))));
        let by = |enrolled| Some(Wanted { user: &jane, enrolled });
        assert!(is_issued(step(&own, by(at(6)), Some(&secret), at(10))));
        assert_eq!(step(&own, by(at(4)), Some(&secret), at(10)), keep, "of another replica");
    }

    #[test]
    fn a_damaged_secret_is_replaced() {
        let jane = user("jane");
        for damage in [
            (|secret: &mut Value| secret["data"] = json!({})) as fn(&mut Value),
            |secret| secret["metadata"]["annotations"] = json!({}),
            |secret| secret["metadata"]["annotations"]["atoll.dev/kubeconfig-renewal"] = json!("soon"),
            |secret| secret["metadata"]["annotations"]["atoll.dev/kubeconfig-expiry"] = json!("9998-01-01T00:00:00Z"),
        ] {
            assert!(is_issued(step(&object("u"), Some(wanted(&jane)), Some(&stored(damage)), at(1))));
        }
        let foreign = stored(|secret| secret["metadata"]["ownerReferences"] = json!([]));
        assert_eq!(step(&object("u"), Some(wanted(&jane)), Some(&foreign), at(1)), Step::Foreign);
    }

    #[test]
    fn only_the_own_secret_is_deleted() {
        let secret = stored(|secret| secret["metadata"]["uid"] = json!("of-the-secret"));
        assert_eq!(step(&object("u"), None, Some(&secret), at(1)), Step::Delete { uid: "of-the-secret" });
        assert_eq!(step(&object("other"), None, Some(&secret), at(1)), Step::Nothing);
        assert_eq!(step(&object("u"), None, None, at(1)), Step::Nothing);
    }
}
