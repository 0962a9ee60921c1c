//! For tests.

use std::path::Path;

use crate::config::ProxyServerConfiguration;

/// A configuration file in this directory with these keys.
pub(crate) fn parse(dir: &Path, rest: &str) -> ProxyServerConfiguration {
    let text = format!(
        "apiVersion: atoll.dev/v1alpha1\nkind: ProxyServerConfiguration\n\
         servingCA: {{certificate: a.crt, key: a.key}}\nagentCA: {{certificate: b.crt}}\n{rest}"
    );
    ops::config::parse(&text, &dir.join("server.yaml")).unwrap()
}
