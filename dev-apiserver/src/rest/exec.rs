//! `kubectl exec` and `attach`, over WebSocket (KEP-4006): no container runs, so a few commands are answered by hand and
//! what is typed comes back.

use http::header::{CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use kube_wire::Status;
use kube_wire::query::parse_bool;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::log::container;
use super::read::find;
use super::request::ApiRequest;
use crate::access::rbac;
use crate::answer::Body;
use crate::body::RequestBody;
use crate::object;
use crate::websocket::{Opcode, accept, frame, take};

/// The subprotocols, the better one first; the older one cannot say that the input has ended.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const CLOSE: u8 = 255;

/// What a shell says of a command that is there and cannot be run (POSIX, 2.8.2).
const CANNOT_RUN: u8 = 126;

/// What there is to say, whether what is typed comes back, and how it ends.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    first: String,
    channel: u8,
    echo: bool,
    /// Of the command that would have run.
    exit_code: u8,
}

pub(super) fn exec(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    // A WebSocket is a GET, and nobody who may only read may run something (as kube-apiserver since 1.35).
    let attributes = request.attributes("create");
    let pod = request.api.store.read(|state| {
        if !rbac::allows(state, request.user, &attributes) {
            return Err(attributes.forbidden(request.user));
        }
        find(state, request).cloned()
    })?;
    let query = request.query;
    let option = |key: &str| query.first(key).ok().flatten().map(std::borrow::Cow::into_owned);
    let container = container(&pod, option("container").as_deref())?;
    if pod["status"]["phase"] != "Running" {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        let message = format!("cannot exec into a container in a completed or pending pod; current phase is {phase}");
        return Err(Status::bad_request(message));
    }
    let command: Vec<String> = query.all("command").filter_map(Result::ok).map(std::borrow::Cow::into_owned).collect();
    let has_input = option("stdin").is_some_and(|value| parse_bool(&value));
    let is_terminal = option("tty").is_some_and(|value| parse_bool(&value));
    let answer = answer(&pod, &container, &command, has_input, is_terminal);
    let (response, upgrade) = switch(request, body)?;
    let tasks = request.api.tasks.clone();
    request.api.tasks.spawn("exec", async move {
        tokio::select! {
            () = tasks.cancelled() => {}
            outcome = talk(upgrade, answer) => if let Err(error) = outcome {
                tracing::debug!(%error, "exec ended early");
            }
        }
    });
    Ok(response)
}

/// 101, or why not.
fn switch(request: &ApiRequest<'_>, body: RequestBody) -> Result<(Response<Body>, OnUpgrade), Status> {
    let is_websocket = request.header(UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let key = request.header(SEC_WEBSOCKET_KEY);
    let (true, Some(key), Some(upgrade)) = (is_websocket, key, body.upgrade()) else {
        return Err(Status::bad_request("dev-apiserver streams over WebSocket only: this is no upgrade to it"));
    };
    let offered = request.header(SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let protocol = PROTOCOLS.into_iter().find(|known| offered.split(',').any(|one| one.trim() == *known));
    let Some(protocol) = protocol else {
        return Err(Status::bad_request(format!("none of the subprotocols {PROTOCOLS:?} is offered")));
    };
    let mut response = Response::new(Body::Whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(UPGRADE, "websocket");
    set(CONNECTION, "Upgrade");
    set(SEC_WEBSOCKET_ACCEPT, &accept(key));
    set(SEC_WEBSOCKET_PROTOCOL, protocol);
    Ok((response, upgrade))
}

fn answer(pod: &Value, container: &str, command: &[String], has_input: bool, is_terminal: bool) -> Answer {
    let end = if is_terminal { "\r\n" } else { "\n" };
    let name = object::name(pod);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let first = match words.as_slice() {
        ["echo", words @ ..] => words.join(" ") + end,
        ["hostname"] => format!("{name}{end}"),
        ["env" | "printenv"] => {
            let containers = object::items(&pod["spec"]["containers"]).iter();
            let of = containers.filter(|one| one["name"] == container).flat_map(|one| object::items(&one["env"]));
            let own = format!("HOSTNAME={name}{end}");
            of.fold(own, |text, variable| {
                let text_of = |field: &str| variable[field].as_str().unwrap_or_default().to_owned();
                text + &text_of("name") + "=" + &text_of("value") + end
            })
        }
        ["cat"] if has_input => String::new(),
        // Whoever attaches, talks to what does not run.
        [] => String::new(),
        words => {
            let command = words.join(" ");
            let first = format!("dev-apiserver runs no containers; {name}/{container} would run: {command}{end}");
            let channel = if is_terminal { STDOUT } else { STDERR };
            return Answer { first, channel, echo: has_input && is_terminal, exit_code: CANNOT_RUN };
        }
    };
    Answer { first, channel: STDOUT, echo: has_input, exit_code: 0 }
}

/// Says it, gives back what is typed, says that all went well.
async fn talk(upgrade: OnUpgrade, answer: Answer) -> anyhow::Result<()> {
    let mut stream: TokioIo<Upgraded> = TokioIo::new(upgrade.await?);
    let channel = |channel: u8, bytes: &[u8]| frame(Opcode::Data, &[&[channel], bytes].concat());
    if !answer.first.is_empty() {
        stream.write_all(&channel(answer.channel, answer.first.as_bytes())).await?;
    }
    let (mut arrived, mut chunk, mut open) = (Vec::new(), vec![0; 16 * 1024], answer.echo);
    let mut current = STDIN;
    while open {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        arrived.extend_from_slice(&chunk[..count]);
        while let Some(taken) = take(&mut arrived)? {
            match (taken.opcode, taken.payload.split_first()) {
                (Opcode::Close, _) => return Ok(()),
                (Opcode::Ping, _) => stream.write_all(&frame(Opcode::Pong, &taken.payload)).await?,
                (Opcode::Data, Some((&CLOSE, [STDIN]))) => open = false,
                (Opcode::Data, Some((&to, typed))) => {
                    current = to;
                    // Ctrl-D on a terminal.
                    open &= to != STDIN || !typed.contains(&4);
                    if to == STDIN && !typed.is_empty() {
                        stream.write_all(&channel(STDOUT, typed)).await?;
                    }
                }
                (Opcode::Continuation, Some(_)) if current == STDIN => {
                    stream.write_all(&channel(STDOUT, &taken.payload)).await?;
                }
                _ => {}
            }
        }
    }
    let status = status(answer.exit_code);
    stream.write_all(&channel(ERROR, status.to_string().as_bytes())).await?;
    // 1000: normal closure (RFC 6455 section 7.4.1).
    stream.write_all(&frame(Opcode::Close, &1000_u16.to_be_bytes())).await?;
    stream.flush().await?;
    // The client closes; whatever it still says is of no interest.
    while stream.read(&mut chunk).await? > 0 {}
    Ok(())
}

/// How it ended, as kubelet says it on the error channel (`remotecommand.NonZeroExitCodeReason`).
fn status(exit_code: u8) -> Value {
    if exit_code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    let cause = json!({"reason": "ExitCode", "message": exit_code.to_string()});
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]},
        "message": format!("command terminated with non-zero exit code: exit status {exit_code}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_commands_are_answered() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}});
        let said = |words: &[&str]| {
            let command: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            answer(&pod, "c", &command, false, false).first
        };
        assert_eq!(said(&["echo", "a", "b"]), "a b\n");
        assert_eq!(said(&["env"]), "HOSTNAME=p\nA=1\n");
        assert!(said(&["rm", "-rf", "/"]).ends_with("p/c would run: rm -rf /\n"));
        let refused = answer(&pod, "c", &["rm".to_owned()], true, false);
        assert_eq!((refused.channel, refused.echo, refused.exit_code), (STDERR, false, CANNOT_RUN));
        assert_eq!(status(CANNOT_RUN)["details"]["causes"][0]["message"], "126");
    }
}
