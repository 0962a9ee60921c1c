//! `dev-apiserver` in the same process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dev_apiserver::Unlistened;
use host_client::{Host, in_memory};
use ops::drain::Tasks;
use ops::pki::Authority;
use ops::tls::ClientCa;
use tokio::io::DuplexStream;

/// The certificates live as long as any test.
const LIFETIME: Duration = Duration::from_secs(3600);

/// `dev-apiserver`, with the objects of a new cluster: four nodes, of which two have `location: beijing`, and two
/// `location: hangzhou`.
pub struct DevHost {
    server: Unlistened,
    authority: Authority,
    tasks: Tasks,
}

// === impl DevHost ===

impl DevHost {
    /// It must be called within a tokio runtime.
    #[expect(clippy::new_without_default, reason = "it starts tasks")]
    pub fn new() -> Self {
        let tasks = Tasks::new();
        let authority = Authority::create("test", LIFETIME).unwrap();
        let pem = authority.certificate_pem();
        let client_ca = ClientCa::from_pem(pem.as_bytes()).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 6443));
        let server = Unlistened::start(client_ca, pem.to_owned(), address, &tasks);
        Self { server, authority, tasks }
    }

    /// A client of it with the certificate of a user in these groups.
    pub fn host(&self, user: &str, groups: &[&str]) -> Host {
        let pair = self.authority.issue_client(user, groups, LIFETIME).unwrap();
        let chain: Arc<[_]> = ops::pki::certificates_from_pem(pair.certificate.as_bytes()).unwrap().into();
        let (server, tasks) = (self.server.clone(), self.tasks.clone());
        let accept = move |io: DuplexStream| {
            let (server, chain) = (server.clone(), Arc::clone(&chain));
            tasks.spawn("dev-apiserver in memory", async move { server.serve(io, chain).await });
        };
        in_memory::served_by(Arc::new(accept), &self.tasks)
    }
}
