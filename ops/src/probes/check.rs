//! Named checks of this process, which run together.

use std::fmt::{self, Display, Write as _};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::page_response::{PageResponse, Query};

/// How long a result is cached. Anyone can probe at any rate, and a check may be a request through a tunnel.
const CACHE_TIME: Duration = Duration::from_millis(500);

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The checks behind one probe. All must pass.
#[derive(Clone, Default)]
pub struct Checks {
    list: Vec<Arc<Check>>,
}

struct Check {
    name: &'static str,
    limit: Duration,
    ask: Box<dyn Fn() -> BoxFuture<Result<(), String>> + Send + Sync>,
    /// Held while the check runs, so that concurrent probes share the result.
    last: Mutex<Option<(Instant, Result<(), String>)>>,
}

// === impl Checks ===

impl Checks {
    /// No checks: a process that answers is healthy.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check. `ask` runs at most twice a second, and fails if it takes longer than `limit`. All clients that can
    /// reach the port see the error.
    #[must_use]
    pub fn with<F, A, E>(mut self, name: &'static str, limit: Duration, ask: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        let ask = move || -> BoxFuture<_> {
            let answer = ask();
            Box::pin(async move { answer.await.map_err(|error| error.to_string()) })
        };
        self.list.push(Arc::new(Check { name, limit, ask: Box::new(ask), last: Mutex::new(None) }));
        self
    }

    /// Runs all checks concurrently, and returns the response to the probe called `probe` (`readyz`).
    ///
    /// `?verbose` lists the checks even if all pass; `?exclude=NAME` skips one.
    pub(super) async fn answer(&self, probe: &str, query: &Query) -> PageResponse {
        let results = self.run(query).await;
        let failed = results.iter().any(|(_, result)| matches!(result, Some(Err(_))));
        if !failed && !query.has("verbose") {
            return PageResponse::text("ok");
        }
        let mut text = "[+]ping ok\n".to_owned();
        for (name, result) in &results {
            let line = match result {
                Some(Ok(())) => writeln!(text, "[+]{name} ok"),
                Some(Err(reason)) => writeln!(text, "[-]{name} failed: {}", one_line(reason)),
                None => writeln!(text, "[+]{name} excluded: ok"),
            };
            line.expect("writing to a String cannot fail");
        }
        for unknown in query.values("exclude").filter(|name| !results.iter().any(|(known, _)| known == name)) {
            let unknown = one_line(unknown);
            writeln!(text, "warn: there is no check {unknown:?} to exclude").expect("writing to a String cannot fail");
        }
        text.push_str(probe);
        if failed {
            text.push_str(" check failed\n");
            PageResponse::text(text).with_status(StatusCode::SERVICE_UNAVAILABLE)
        } else {
            text.push_str(" check passed\n");
            PageResponse::text(text)
        }
    }

    /// The same probe for each check alone, as in kube-apiserver under `/readyz/NAME`.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, Self)> {
        self.list.iter().map(|check| {
            let alone = Self { list: vec![check.clone()] };
            (check.name, alone)
        })
    }

    /// The results in order; `None` for excluded checks.
    async fn run(&self, query: &Query) -> Vec<(&'static str, Option<Result<(), String>>)> {
        let results = self.list.iter().map(|check| async {
            if query.values("exclude").any(|name| name == check.name) {
                (check.name, None)
            } else {
                (check.name, Some(check.result().await))
            }
        });
        all(results).await
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.list.iter().map(|check| check.name);
        f.debug_list().entries(names).finish()
    }
}

// === impl Check ===

impl Check {
    async fn result(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < CACHE_TIME
        {
            return result.clone();
        }
        let result = timeout(self.limit, (self.ask)())
            .await
            .unwrap_or_else(|_| Err(format!("no response within {:?}", self.limit)));
        // Logged only when it changes: the response to each probe has the result.
        let passed = last.as_ref().is_none_or(|(_, before)| before.is_ok());
        match &result {
            Err(reason) if passed => tracing::warn!(check = self.name, ?reason, "the check fails"),
            Ok(()) if !passed => tracing::info!(check = self.name, "the check passes again"),
            _ => {}
        }
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

/// A reason may quote a peer, so it is cut to one short line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

/// Waits for all futures, concurrently in this task.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<_> = waiting.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in waiting.iter_mut().zip(&mut done) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
