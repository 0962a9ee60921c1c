//! The request to explain, as kubectl would send it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use kube_wire::media::JSON;
use protocol::ClusterName;
use proxy_agent::exchange::explain::is_namespaced;
use rewrite::schema;
use serde_json::Value;

/// The size limit of a file, in bytes. An API server accepts no body of more than 3 MiB.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// A request.
#[derive(Debug)]
pub(super) struct ClientRequest {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    /// The object to create, if any.
    pub(super) object: Option<Value>,
    /// An assumption about the request, if any.
    pub(super) assumption: Option<String>,
}

// === impl ClientRequest ===

impl ClientRequest {
    /// A request without a body.
    pub(super) fn new(method: &Method, url: &str, cluster: &ClusterName) -> anyhow::Result<Self> {
        // Without a slash, `pods` would be a host name with an empty path.
        ensure!(url.starts_with('/') || url.contains("://"), "{url:?} is not a URL: the path must begin with a slash");
        let uri: Uri = url
            .parse()
            .with_context(|| format!("{url:?} is not a URL; write other characters as %XX (a space is %20)"))?;
        let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        // The URL of an endpoint without a proxy has this prefix.
        let target =
            target.strip_prefix(&format!("/clusters/{cluster}")).filter(|rest| rest.starts_with('/')).unwrap_or(target);
        Ok(Self { method: method.clone(), target: target.to_owned(), object: None, assumption: None })
    }

    /// The HTTP request, as kubectl sends it.
    pub(super) fn to_http(&self) -> anyhow::Result<Request<Bytes>> {
        let body = self.object.as_ref().map(|object| Bytes::from(object.to_string())).unwrap_or_default();
        let mut request = Request::builder().method(&self.method).uri(&self.target).body(body)?;
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static(JSON));
        if self.object.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        Ok(request)
    }

    /// A request that creates an object.
    fn create(object: Value, namespace: &str) -> anyhow::Result<Self> {
        let text = |value: &Value, what: &str| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned).with_context(|| format!("an object has no {what}"))
        };
        let (api_version, kind) = (text(&object["apiVersion"], "apiVersion")?, text(&object["kind"], "kind")?);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let known = schema::resource_of(group, &kind);
        let resource = known.map_or_else(|| plural(&kind), str::to_owned);
        let given = object["metadata"]["namespace"].as_str();
        let namespaced = is_namespaced(group, &resource).unwrap_or(true);
        let assumption = known.is_none().then(|| {
            format!("{kind} is not a built-in kind; the resource is assumed to be {resource}, and namespaced")
        });
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let target = if namespaced {
            format!("{root}/namespaces/{}/{resource}", given.unwrap_or(namespace))
        } else {
            format!("{root}/{resource}")
        };
        Ok(Self { method: Method::POST, target, object: Some(object), assumption })
    }
}

/// The requests that create the objects of a file.
pub(super) fn objects(file: &Path, namespace: &str) -> anyhow::Result<Vec<ClientRequest>> {
    let text = read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents: Vec<Value> =
        // A snippet of the file in the error could show the data of a Secret.
        serde_saphyr::from_multiple(&text).map_err(|error| anyhow!("{}: {}", file.display(), error.without_snippet()))?;
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                let Some(Value::Array(items)) = list.remove("items") else {
                    bail!("{}: a List has no items", file.display())
                };
                objects.extend(items);
            }
            object @ Value::Object(_) => objects.push(object),
            _ => bail!("{}: a document is not an object", file.display()),
        }
    }
    ensure!(!objects.is_empty(), "{} contains no object", file.display());
    objects.into_iter().map(|object| ClientRequest::create(object, namespace)).collect()
}

fn read(file: &Path) -> io::Result<String> {
    let source: Box<dyn Read> =
        if file == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(file)?) };
    let mut text = String::new();
    source.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// The plural, as kubectl guesses it (`UnsafeGuessKindToResource` in apimachinery's `pkg/api/meta/restmapper.go`).
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.as_bytes() {
        [.., b's'] => format!("{kind}es"),
        [rest @ .., b'y'] => format!("{}ies", String::from_utf8_lossy(rest)),
        _ => format!("{kind}s"),
    }
}
