//! Labels as types.

use std::hash::Hash;
use std::sync::Arc;

/// The value of one label.
///
/// Implement it for enums, whose number of values is known. The string types are for names that an operator chose
/// (clusters, agents), and never for what a client sends.
pub trait LabelValue: Clone + Eq + Hash + Send + Sync + 'static {
    /// The value as it is exported. Values that differ must have texts that differ.
    fn label(&self) -> &str;
}

/// All labels of one series. Define it with [`label_set!`](crate::label_set), so that names and values always
/// correspond.
pub trait LabelSet: Clone + Eq + Hash + Send + Sync + 'static {
    /// The names of the labels.
    const NAMES: &'static [&'static str];

    /// Their values, in the order of [`NAMES`](Self::NAMES).
    fn values(&self) -> Vec<&str>;
}

/// Defines a struct whose fields are labels, each of a type with [`LabelValue`](crate::metrics::LabelValue).
///
/// ```
/// use std::sync::Arc;
/// use ops::metrics::{Build, LabelValue, Registry};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum Fault { Client, Host }
///
/// impl LabelValue for Fault {
///     fn label(&self) -> &str {
///         match self {
///             Self::Client => "client",
///             Self::Host => "host",
///         }
///     }
/// }
///
/// ops::label_set! {
///     /// Who is to blame for a refusal.
///     struct Refused {
///         cluster: Arc<str>,
///         fault: Fault,
///     }
/// }
///
/// let registry = Registry::new(Build { component: "doc", version: "0" });
/// let refused = registry.counters::<Refused>("atoll_refused_total", "Requests that were refused.");
/// refused.with(&Refused { cluster: "ke-beijing".into(), fault: Fault::Client }).inc();
/// assert!(registry.encode().contains(r#"atoll_refused_total{cluster="ke-beijing",fault="client"} 1"#));
/// ```
#[macro_export]
macro_rules! label_set {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$label_attribute:meta])* $label_visibility:vis $label:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        $visibility struct $name {
            $($(#[$label_attribute])* $label_visibility $label: $type),+
        }

        impl $crate::metrics::LabelSet for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($label)),+];

            fn values(&self) -> Vec<&str> {
                vec![$($crate::metrics::LabelValue::label(&self.$label)),+]
            }
        }
    };
}

// === impl LabelValue ===

impl LabelValue for &'static str {
    fn label(&self) -> &str {
        self
    }
}

impl LabelValue for Arc<str> {
    fn label(&self) -> &str {
        self
    }
}

impl LabelValue for bool {
    fn label(&self) -> &str {
        if *self { "true" } else { "false" }
    }
}

// === impl LabelSet ===

/// No labels.
impl LabelSet for () {
    const NAMES: &'static [&'static str] = &[];

    fn values(&self) -> Vec<&str> {
        Vec::new()
    }
}
