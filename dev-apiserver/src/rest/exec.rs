//! `kubectl exec` and `attach`, over WebSocket (KEP-4006). No container runs, so this module simulates a few commands, and
//! echoes the input.

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
use crate::body::RequestBody;
use crate::object;
use crate::response::Body;
use crate::websocket::{Opcode, accept, frame, take};

/// The supported subprotocols, in order of preference. Only version 5 can close the input.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const CLOSE: u8 = 255;

/// The exit code of a shell for a command that cannot be executed (POSIX, section 2.8.2).
const CANNOT_RUN: u8 = 126;

/// The result of a simulated command.
#[derive(Debug, PartialEq, Eq)]
struct Simulation {
    output: String,
    channel: u8,
    echoes_input: bool,
    exit_code: u8,
}

pub(super) fn exec(request: &ApiRequest<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    // A WebSocket starts with a GET. Since 1.35, kube-apiserver requires the verb `create` for it, too.
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
    let simulation = simulate(&pod, &container, &command, has_input, is_terminal);
    let (response, upgrade) = switch(request, body)?;
    let tasks = request.api.tasks.clone();
    request.api.tasks.spawn("exec", async move {
        tokio::select! {
            () = tasks.cancelled() => {}
            outcome = run(upgrade, simulation) => if let Err(error) = outcome {
                tracing::debug!(%error, "exec failed");
            }
        }
    });
    Ok(response)
}

/// The response 101, and the connection after it.
fn switch(request: &ApiRequest<'_>, body: RequestBody) -> Result<(Response<Body>, OnUpgrade), Status> {
    let is_websocket = request.header(UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let key = request.header(SEC_WEBSOCKET_KEY);
    let (true, Some(key), Some(upgrade)) = (is_websocket, key, body.upgrade()) else {
        return Err(Status::bad_request("dev-apiserver supports exec and attach only over WebSocket"));
    };
    let offered = request.header(SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let protocol = PROTOCOLS.into_iter().find(|known| offered.split(',').any(|one| one.trim() == *known));
    let Some(protocol) = protocol else {
        return Err(Status::bad_request(format!("the client must offer one of the subprotocols {PROTOCOLS:?}")));
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

fn simulate(pod: &Value, container: &str, command: &[String], has_input: bool, is_terminal: bool) -> Simulation {
    let end = if is_terminal { "\r\n" } else { "\n" };
    let name = object::name(pod);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let output = match words.as_slice() {
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
        // `attach` has no command.
        [] => String::new(),
        words => {
            let command = words.join(" ");
            let output = format!("dev-apiserver runs no containers; {name}/{container} would run: {command}{end}");
            let channel = if is_terminal { STDOUT } else { STDERR };
            return Simulation { output, channel, echoes_input: has_input && is_terminal, exit_code: CANNOT_RUN };
        }
    };
    Simulation { output, channel: STDOUT, echoes_input: has_input, exit_code: 0 }
}

/// Sends the output, echoes the input, and sends the exit code.
async fn run(upgrade: OnUpgrade, simulation: Simulation) -> anyhow::Result<()> {
    let mut stream: TokioIo<Upgraded> = TokioIo::new(upgrade.await?);
    let channel = |channel: u8, bytes: &[u8]| frame(Opcode::Data, &[&[channel], bytes].concat());
    if !simulation.output.is_empty() {
        stream.write_all(&channel(simulation.channel, simulation.output.as_bytes())).await?;
    }
    let (mut received, mut chunk, mut open) = (Vec::new(), vec![0; 16 * 1024], simulation.echoes_input);
    let mut current = STDIN;
    while open {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(&chunk[..count]);
        while let Some(taken) = take(&mut received)? {
            match (taken.opcode, taken.payload.split_first()) {
                (Opcode::Close, _) => return Ok(()),
                (Opcode::Ping, _) => stream.write_all(&frame(Opcode::Pong, &taken.payload)).await?,
                (Opcode::Data, Some((&CLOSE, [STDIN]))) => open = false,
                (Opcode::Data, Some((&to, input))) => {
                    current = to;
                    // Ctrl-D closes the input of a terminal.
                    open &= to != STDIN || !input.contains(&4);
                    if to == STDIN && !input.is_empty() {
                        stream.write_all(&channel(STDOUT, input)).await?;
                    }
                }
                (Opcode::Continuation, Some(_)) if current == STDIN => {
                    stream.write_all(&channel(STDOUT, &taken.payload)).await?;
                }
                _ => {}
            }
        }
    }
    let status = status(simulation.exit_code);
    stream.write_all(&channel(ERROR, status.to_string().as_bytes())).await?;
    // 1000: normal closure (RFC 6455 section 7.4.1).
    stream.write_all(&frame(Opcode::Close, &1000_u16.to_be_bytes())).await?;
    stream.flush().await?;
    // The client closes the connection.
    while stream.read(&mut chunk).await? > 0 {}
    Ok(())
}

/// The `Status` on the error channel, as kubelet writes it (`remotecommand.NonZeroExitCodeReason`).
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
    fn a_few_commands_are_simulated() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}});
        let output = |words: &[&str]| {
            let command: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            simulate(&pod, "c", &command, false, false).output
        };
        assert_eq!(output(&["echo", "a", "b"]), "a b\n");
        assert_eq!(output(&["env"]), "HOSTNAME=p\nA=1\n");
        assert!(output(&["rm", "-rf", "/"]).ends_with("p/c would run: rm -rf /\n"));
        let refused = simulate(&pod, "c", &["rm".to_owned()], true, false);
        assert_eq!((refused.channel, refused.echoes_input, refused.exit_code), (STDERR, false, CANNOT_RUN));
        assert_eq!(status(CANNOT_RUN)["details"]["causes"][0]["message"], "126");
    }
}
