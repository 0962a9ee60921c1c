//! The conditions of a Namespace that is being deleted, without the objects that Atoll keeps there.
//!
//! Mirrors of ClusterRoleBindings outlive all other objects of a namespace, so the host counts them: as RoleBindings in one
//! condition and by their finalizer in another (`ProcessContentTotals` in kube-controller-manager's
//! `namespace/deletion/status_condition_utils.go`). The second condition shows how many RoleBindings of the first are mirrors.

use crate::Mapping;
use crate::json::{Cursor, Edits, Malformed, Outcome, unquoted};
use crate::name::HIDDEN_PREFIX;
use crate::program::{Node, Visitor, descend};

/// A condition that counts.
pub(super) struct Counting {
    kind: &'static str,
    /// The beginning of its message.
    prefix: &'static str,
    /// The text between a name and a number.
    between: &'static str,
    /// The reason and message if nothing is left.
    nothing: (&'static str, &'static str),
}

/// The mapped condition.
pub(super) struct Recounted {
    message: String,
    /// Changed, if nothing is left.
    pub(super) status: Option<&'static str>,
    pub(super) reason: Option<&'static str>,
}

const CONTENT: Counting = Counting {
    kind: "NamespaceContentRemaining",
    prefix: "Some resources are remaining: ",
    between: " has ",
    nothing: ("ContentRemoved", "All content successfully removed"),
};

const FINALIZERS: Counting = Counting {
    kind: "NamespaceFinalizersRemaining",
    prefix: "Some content in the namespace has finalizers remaining: ",
    between: " in ",
    nothing: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
};

/// The text after a number.
const UNIT: &str = " resource instances";

/// The resource of mirrors.
const MIRRORS: &str = "rolebindings.rbac.authorization.k8s.io";

// === impl Counting ===

impl Counting {
    /// The counting condition of this type, if there is one.
    pub(super) fn of(kind: impl Fn(&str) -> bool) -> Option<Self> {
        [CONTENT, FINALIZERS].into_iter().find(|known| kind(known.kind))
    }

    /// The condition without `mirrors` mirrors; `None` if they are not in its message.
    pub(super) fn recounted(&self, message: &str, mirrors: u64) -> Option<Recounted> {
        let message = self.without(message, mirrors)?;
        let (reason, nothing) = self.nothing;
        Some(if message.is_empty() {
            Recounted { message: nothing.to_owned(), status: Some("False"), reason: Some(reason) }
        } else {
            Recounted { message, status: None, reason: None }
        })
    }

    /// The number of mirrors in a condition with this message.
    pub(super) fn mirrors(kind: impl Fn(&str) -> bool, message: &str) -> u64 {
        if !kind(FINALIZERS.kind) {
            return 0;
        }
        let entries = FINALIZERS.parse(message).unwrap_or_default();
        entries.iter().filter(|(name, _)| name.starts_with(HIDDEN_PREFIX)).map(|(_, number)| number).sum()
    }

    /// The names and numbers in a message; `None` if it is another kind of message.
    fn parse<'m>(&self, message: &'m str) -> Option<Vec<(&'m str, u64)>> {
        let entries = message.strip_prefix(self.prefix)?.split(", ");
        let entry = |text: &'m str| {
            let (name, number) = text.strip_suffix(UNIT)?.rsplit_once(self.between)?;
            Some((name, number.parse().ok()?))
        };
        entries.map(entry).collect()
    }

    fn print(&self, entries: &[(&str, u64)]) -> String {
        let entry = |(name, number): &(&str, u64)| format!("{name}{}{number}{UNIT}", self.between);
        self.prefix.to_owned() + &entries.iter().map(entry).collect::<Vec<_>>().join(", ")
    }

    /// The message without `mirrors` mirrors, empty if nothing is left; `None` if they are not in it.
    fn without(&self, message: &str, mirrors: u64) -> Option<String> {
        let mut entries = self.parse(message)?;
        for (name, number) in &mut entries {
            if name.starts_with(HIDDEN_PREFIX) {
                *number = 0;
            } else if *name == MIRRORS {
                *number = number.saturating_sub(mirrors);
            }
        }
        entries.retain(|(_, number)| *number > 0);
        Some(if entries.is_empty() { String::new() } else { self.print(&entries) })
    }
}

/// `status.conditions` of a Namespace, which are at `node`. `visitor` handles those without counts.
pub(super) fn conditions<V: Visitor<Error = Malformed>>(
    visitor: &mut V,
    mapping: &Mapping,
    node: &Node,
    cursor: &mut Cursor<'_>,
    edits: &mut Edits,
) -> Result<(), Malformed> {
    let mirrors = if cursor.peek()? == b'[' { mirrors(cursor)? } else { 0 };
    let Some(element) = node.element().filter(|_| mirrors > 0) else {
        return descend(visitor, node, cursor, edits).map(drop);
    };
    cursor.array(edits, |cursor, edits, _| {
        let counting = match cursor.peek()? {
            b'{' => cursor.look_up("type")?,
            _ => None,
        };
        let counting = Counting::of(|known| counting.is_some_and(|kind| kind.is(known)));
        let message = match counting {
            Some(_) => cursor.look_up("message")?,
            None => None,
        };
        let recounted = counting.zip(message);
        let recounted = recounted.and_then(|(counting, message)| counting.recounted(&message.decode(), mirrors));
        match recounted {
            Some(recounted) => recounted.write(mapping, cursor, edits)?,
            None => descend(visitor, element, cursor, edits).map(drop)?,
        }
        Ok::<_, Malformed>(Outcome::Keep)
    })?;
    Ok(())
}

// === impl Recounted ===

impl Recounted {
    /// The message for the virtual cluster.
    pub(super) fn readable(&self, mapping: &Mapping) -> String {
        mapping.readable(&self.message).unwrap_or_else(|| self.message.clone())
    }

    /// Changes the condition that is the next value.
    fn write(&self, mapping: &Mapping, cursor: &mut Cursor<'_>, edits: &mut Edits) -> Result<(), Malformed> {
        cursor.object(edits, |cursor, edits, key| {
            if cursor.peek()? != b'"' {
                cursor.skip()?;
                return Ok(Outcome::Keep);
            }
            let text = cursor.string()?;
            match &*key.decode() {
                "message" => edits.replace(text.range(), unquoted(&self.readable(mapping))),
                "status" => self.status.into_iter().for_each(|new| edits.replace(text.range(), unquoted(new))),
                "reason" => self.reason.into_iter().for_each(|new| edits.replace(text.range(), unquoted(new))),
                _ => {}
            }
            Ok::<_, Malformed>(Outcome::Keep)
        })?;
        Ok(())
    }
}

/// The number of mirrors in the conditions at the cursor. Consumes nothing.
fn mirrors(cursor: &Cursor<'_>) -> Result<u64, Malformed> {
    let mut ahead = cursor.clone();
    let mut counted = 0;
    ahead.array(&mut Edits::new(), |ahead, _, _| {
        if ahead.peek()? == b'{'
            && let Some(kind) = ahead.look_up("type")?
            && let Some(message) = ahead.look_up("message")?
        {
            counted += Counting::mirrors(|known| kind.is(known), &message.decode());
        }
        ahead.skip()?;
        Ok::<_, Malformed>(Outcome::Keep)
    })?;
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use crate::view::tests::check;

    fn namespace(content: [&str; 3], finalizers: [&str; 3]) -> String {
        let condition = |kind: &str, [status, reason, message]: [&str; 3]| {
            format!(r#"{{"type":"{kind}","status":"{status}","reason":"{reason}","message":"{message}"}}"#)
        };
        format!(
            r#"{{"metadata":{{"name":"NAME"}},"status":{{"conditions":[{},{}],"phase":"Terminating"}}}}"#,
            condition("NamespaceContentRemaining", content),
            condition("NamespaceFinalizersRemaining", finalizers),
        )
    }

    #[test]
    fn mirrors_are_not_counted() {
        // As kube-controller-manager writes them.
        let content = |what: &str| format!("Some resources are remaining: {what}");
        let finalizers = |what: &str| format!("Some content in the namespace has finalizers remaining: {what}");
        let ours = "atoll.dev/mirror in 2 resource instances";
        let other = "example.com/hold in 1 resource instances";
        let roles = |number: u32| format!("rolebindings.rbac.authorization.k8s.io has {number} resource instances");
        let maps = "configmaps. has 1 resource instances";
        let some = |content: &str, finalizers: &str| {
            namespace(["True", "SomeResourcesRemain", content], ["True", "SomeFinalizersRemain", finalizers])
        };
        let nothing = namespace(
            ["False", "ContentRemoved", "All content successfully removed"],
            ["False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"],
        );
        for (host, shown) in [
            (
                some(&content(&format!("{maps}, {}", roles(2))), &finalizers(&format!("{ours}, {other}"))),
                some(&content(maps), &finalizers(other)),
            ),
            (
                some(&content(&roles(3)), &finalizers(&format!("{ours}, {other}"))),
                some(&content(&roles(1)), &finalizers(other)),
            ),
            (some(&content(&roles(2)), &finalizers(ours)), nothing),
            (some(&content(&roles(2)), &finalizers(other)), some(&content(&roles(2)), &finalizers(other))),
            (some("else", &finalizers(ours)), {
                let finalizers = ["False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"];
                namespace(["True", "SomeResourcesRemain", "else"], finalizers)
            }),
            (some("in edge-ke", "else"), some("in edge", "else")),
        ] {
            let value = |text: String, name: &str| serde_json::from_str(&text.replace("NAME", name)).unwrap();
            check("", "namespaces", &value(host, "edge-ke"), &value(shown, "edge"));
        }
    }
}
