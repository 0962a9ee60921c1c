//! Requests to pods through the subresource `proxy`: the agent changes neither the request nor the response.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, ensure};
use atoll_tests::kubectl::CONDITION_TIMEOUT;
use atoll_tests::{Route, VirtualSite, eventually};
use serde_json::{Value, json};

use super::{BEIJING, namespace};

/// The address of the pod. Connections to it reach this process.
const ADDRESS: &str = "198.51.100.77";

pub(super) fn servers_get_what_is_meant_for_them(site: &VirtualSite) -> anyhow::Result<()> {
    let kubectl = site.administrator(BEIJING, Route::Path)?;
    let port = serve(site)?;
    kubectl.ok_with(&["create", "-f", "-"], &namespace("proxied"))?;
    // The pod stays on its node, and only the administrator of the host can set its address.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "proxied"},
        "spec": {
            "schedulingGates": [{"name": "example.com/stays"}],
            "containers": [{"name": "web", "image": "none", "ports": [{"containerPort": port}]}],
        },
    });
    kubectl.ok_with(&["create", "-f", "-"], &pod.to_string())?;
    let status = json!({"status": {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}}).to_string();
    let host = site.host().kubectl();
    let of_host = format!("proxied-{BEIJING}");
    host.ok(&["patch", "pod", "web", "-n", &of_host, "--subresource=status", "--type=merge", "-p", &status])?;

    let curl = site.curl(BEIJING, Route::Path)?;
    let path = |path: &str| format!("/api/v1/namespaces/proxied/pods/web:{port}/proxy{path}");
    eventually(CONDITION_TIMEOUT, || {
        let response = curl.get(&path("/"))?;
        ensure!(response.code == 200, "{} {}", response.code, response.body);
        Ok(())
    })?;

    let headers = ["Cookie: session=1", "Range: bytes=0-1", "X-Custom: a", "X-Custom: b", "Accept: text/css"];
    let sending: Vec<&str> = headers.iter().flat_map(|header| ["--header", *header]).collect();
    let asking = curl.clone().with(&sending).with(&["--header", "X-Remote-User: admin"]);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let body = if method == "GET" { "" } else { "{not json" };
        let seen = asking.send(method, &path("/a%2Fb?x=%zz;&x"), body)?;
        ensure!(seen.code == 200, "{method}: {} {}", seen.code, seen.body);
        let seen = seen.json()?;
        ensure!(seen["method"] == method && seen["body"] == body, "{seen}");
        ensure!(seen["target"] == "/a/b?x=%zz;&x", "{seen}");
        for header in headers {
            let (name, value) = header.split_once(": ").context("no header")?;
            ensure!(has(&seen, &name.to_lowercase(), value), "{header} is missing: {seen}");
        }
        for name in ["authorization", "impersonate-user", "impersonate-group", "x-remote-user", "x-atoll-cluster"] {
            ensure!(
                seen["headers"].as_array().is_some_and(|all| all.iter().all(|one| one[0] != name)),
                "{name}: {seen}"
            );
        }
    }

    let including = curl.with(&["--include"]);
    for (code, media_type, body) in ANSWERS {
        let response = including.get(&path(&format!("/{code}")))?;
        let (head, output) = response.body.split_once("\r\n\r\n").context("no head")?;
        ensure!(response.code == code && output == body, "{} {output:?}", response.code);
        for header in [&*format!("content-type: {media_type}"), "set-cookie: session=2", "x-own: 1", "warning: own"] {
            ensure!(head.to_lowercase().contains(header), "{header} is missing:\n{head}");
        }
    }
    let moved = including.get(&path("/302"))?.body.to_lowercase();
    ensure!(moved.contains(&format!("location: {}", path("/elsewhere"))), "{moved}");
    // An error contains names of the virtual cluster, whichever component returns it.
    let nobody = site.curl_like(&site.user(BEIJING, "proxied-nobody")?, BEIJING, Route::Path)?;
    let refused = nobody.get(&path("/"))?.refused(403, "Forbidden", r#"in the namespace "proxied""#)?;
    ensure!(!refused.to_string().contains(&of_host), "{refused}");
    Ok(())
}

/// A response that an API server would not send.
const ANSWERS: [(u16, &str, &str); 4] = [
    (404, "application/json", "{broken"),
    (409, "application/json", r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"edge-ke-beijing"}"#),
    (422, "application/vnd.kubernetes.protobuf", "k8s"),
    (503, "text/plain", "later"),
];

fn has(seen: &Value, name: &str, value: &str) -> bool {
    seen["headers"].as_array().is_some_and(|all| all.iter().any(|one| one[0] == name && one[1] == value))
}

/// A server at a port of [`ADDRESS`], to which the host's API server connects.
fn serve(site: &VirtualSite) -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let mut targets = File::options().append(true).open(site.host().dir().join("pod-targets"))?;
    targets.write_all(format!("{ADDRESS}:{port} 127.0.0.1:{port}\n").as_bytes())?;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || response(&client));
        }
    });
    Ok(port)
}

/// Responds with the request, or as the path requests.
fn response(client: &TcpStream) -> anyhow::Result<()> {
    let mut lines = BufReader::new(client);
    let mut next = || {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        anyhow::Ok(line.trim_end().to_owned())
    };
    let request = next()?;
    let (method, rest) = request.split_once(' ').context("no request")?;
    let target = rest.rsplit_once(' ').context("no request")?.0;
    let mut headers = Vec::new();
    loop {
        let line = next()?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
    // A body of known length keeps its Content-Length.
    let length = header("content-length").map_or(Ok(0), str::parse)?;
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    let own = ANSWERS.iter().find(|(code, ..)| target == format!("/{code}"));
    let echo = json!({"method": method, "target": target, "headers": headers, "body": String::from_utf8_lossy(&body)});
    let (code, media_type, body) = match own {
        Some((code, media_type, body)) => (*code, *media_type, (*body).to_owned()),
        None if target == "/302" => (302, "text/plain", String::new()),
        None => (200, "application/json", echo.to_string()),
    };
    let location = if code == 302 { "Location: /elsewhere\r\n" } else { "" };
    write!(
        &*client,
        "HTTP/1.1 {code} Own\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n{location}\
         Set-Cookie: session=2\r\nX-Own: 1\r\nWarning: own\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
