//! Headers of requests.

use http::{HeaderMap, HeaderName, header};
use kube_wire::Status;
use kube_wire::media::{Accept, Form};

/// The value of a header, if it is text.
pub(crate) fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The forms of objects that the client accepts, its first choice first. There is at least one.
pub(crate) fn accepted_forms(headers: &HeaderMap) -> Result<Vec<Form>, Status> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accept = Accept::parse(values);
    let accepted = accept.json_only().map_err(Status::not_acceptable)?;
    Ok(accepted.forms().to_vec())
}
