//! A watch does not show changes of another cluster on the same host.

use std::io::{BufRead, BufReader};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::end;
use atoll_tests::{Route, VirtualSite};

use super::{BEIJING, HANGZHOU, namespace};

/// The other cluster always writes first. If the watch showed its change, it would come before that of the own cluster.
pub(super) fn show_their_own(site: &VirtualSite) -> anyhow::Result<()> {
    let own = site.administrator(BEIJING, Route::Proxy)?;
    let neighbour = site.administrator(HANGZHOU, Route::Proxy)?;
    for cluster in [&own, &neighbour] {
        cluster.ok_with(&["create", "-f", "-"], &namespace("watched"))?;
    }
    for form in ["name", "wide", "yaml", "json"] {
        let change = |step: &str| {
            neighbour.ok_with(&["create", "-f", "-"], &config_map(&format!("foreign-{form}-{step}")))?;
            own.ok_with(&["create", "-f", "-"], &config_map(&format!("own-{form}-{step}")))
        };
        change("listed")?;
        let mut watch = own.start(&["get", "configmaps", "-A", "--watch", "-o", form, "--show-managed-fields"])?;
        let mut lines = BufReader::new(watch.stdout.take().context("no stdout")?).lines();
        let mut seen = String::new();
        let mut read_until = |end: &str, seen: &mut String| {
            while !seen.contains(end) {
                seen.push_str(&lines.next().with_context(|| format!("the watch ended:\n{seen}"))??);
                seen.push('\n');
            }
            anyhow::Ok(())
        };
        read_until(&format!("own-{form}-listed"), &mut seen)?;
        change("watched")?;
        read_until(&format!("own-{form}-watched"), &mut seen)?;
        end(watch)?;
        for word in ["foreign", HANGZHOU, "watched-ke", "atoll.dev"] {
            let line = seen.lines().find(|line| line.contains(word));
            ensure!(line.is_none(), "-o {form} shows {word}: {line:?}");
        }
    }
    Ok(())
}

fn config_map(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"watched"}}}}"#)
}
