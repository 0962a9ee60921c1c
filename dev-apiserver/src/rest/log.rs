//! `kubectl logs`. No container runs, so each log has three lines, and one more every half second with `follow`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use kube_wire::Status;
use kube_wire::query::parse_bool;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::read::find;
use super::request::ApiRequest;
use crate::api::Api;
use crate::kinds;
use crate::object;
use crate::response::{self, Body};

const TEXT: &str = "text/plain";
const LINES: usize = 3;
/// The interval of further lines.
const LINE_INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn log(request: &ApiRequest<'_>) -> Result<Response<Body>, Status> {
    let pod = request.api.store.read(|state| find(state, request).cloned())?;
    let option = |key: &str| request.query.first(key).ok().flatten().map(std::borrow::Cow::into_owned);
    let is_set = |key: &str| option(key).is_some_and(|value| parse_bool(&value));
    let container = container(&pod, option("container").as_deref())?;
    if is_set("previous") {
        let message = format!("previous terminated container {container:?} in pod {:?} not found", object::name(&pod));
        return Err(Status::bad_request(message));
    }
    if pod["status"]["containerStatuses"].is_null() {
        let message =
            format!("container {container:?} in pod {:?} is waiting to start: ContainerCreating", object::name(&pod));
        return Err(Status::bad_request(message));
    }
    let tail = option("tailLines").and_then(|text| text.parse().ok()).unwrap_or(LINES).min(LINES);
    let since = if is_set("timestamps") { pod["status"]["startTime"].as_str() } else { None };
    let mut text = String::new();
    for number in LINES - tail + 1..=LINES {
        text += &line(number, &container, since);
    }
    // `truncate` cannot split a character, because the names of containers are ASCII.
    if let Some(limit) = option("limitBytes").and_then(|text| text.parse().ok()) {
        text.truncate(limit);
    }
    let is_running = pod["status"]["phase"] == "Running";
    if is_set("follow") && is_running {
        return Ok(follow(request.api, &pod, text, container, since.is_some()));
    }
    Ok(response::whole(StatusCode::OK, TEXT, text))
}

/// Sends these lines, and further ones until the pod terminates.
fn follow(api: &Arc<Api>, pod: &Value, text: String, container: String, stamped: bool) -> Response<Body> {
    let (sender, lines) = mpsc::channel(1);
    let (api, tasks) = (Arc::clone(api), api.tasks.clone());
    let (namespace, name, uid) =
        (object::namespace(pod).to_owned(), object::name(pod).to_owned(), object::uid(pod).to_owned());
    tasks.spawn("log", async move {
        let mut revision = api.store.subscribe();
        if sender.send(Bytes::from(text)).await.is_err() {
            return;
        }
        let runs = || {
            api.store.read(|state| {
                let pod = state.get(kinds::of("", "pods"), &namespace, &name);
                pod.is_some_and(|pod| object::uid(pod) == uid && pod["status"]["phase"] == "Running")
            })
        };
        let mut number = LINES;
        let mut interval = interval_at(Instant::now() + LINE_INTERVAL, LINE_INTERVAL);
        while runs() {
            tokio::select! {
                _ = interval.tick() => {
                    number += 1;
                    let now = object::now();
                    let line = line(number, &container, stamped.then_some(now.as_str()));
                    if sender.send(line.into()).await.is_err() {
                        return;
                    }
                }
                () = sender.closed() => return,
                () = api.tasks.cancelled() => return,
                changed = revision.changed() => if changed.is_err() { return },
            }
        }
    });
    response::stream(TEXT, lines)
}

fn line(number: usize, container: &str, stamp: Option<&str>) -> String {
    let stamp = stamp.map(|stamp| format!("{stamp} ")).unwrap_or_default();
    format!("{stamp}line {number} of container {container}\n")
}

/// The name of the requested container, or of the only one.
pub(super) fn container(pod: &Value, requested: Option<&str>) -> Result<String, Status> {
    let lists = ["containers", "initContainers"].map(|field| object::items(&pod["spec"][field]));
    let names: Vec<&str> = lists.into_iter().flatten().filter_map(|container| container["name"].as_str()).collect();
    match (requested.filter(|requested| !requested.is_empty()), names.as_slice()) {
        (Some(requested), names) if names.contains(&requested) => Ok(requested.to_owned()),
        (Some(requested), _) => {
            Err(Status::bad_request(format!("container {requested} is not valid for pod {}", object::name(pod))))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, names) => {
            let message =
                format!("a container name must be specified for pod {}, choose one of: {names:?}", object::name(pod));
            Err(Status::bad_request(message))
        }
    }
}
