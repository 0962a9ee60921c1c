//! Clients that read one object again and again, while something happens that they must not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{anyhow, ensure};

use crate::{Credentials, Curl, Kubectl};

/// The object that they read. Each namespace has it.
const MAP: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";

/// Two clients, each with a new connection for each request.
#[derive(Debug)]
pub struct Reads {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<anyhow::Result<()>>>,
}

// === impl Reads ===

impl Reads {
    /// Starts them. `address` is HOST:PORT of the listener for endpoints.
    pub fn start(kubectl: &Kubectl, address: &str, cluster: &str) -> anyhow::Result<Self> {
        let credentials = Credentials::of(kubectl)?;
        let curl = Curl::directly(&format!("{address}/clusters/{cluster}"), &credentials.authority)
            .with_certificate(&credentials.certificate, &credentials.key)
            .with(&["--max-time", "5"]);
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let client = || {
            let (curl, stop, sent) = (curl.clone(), Arc::clone(&stop), Arc::clone(&sent));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let response = curl.get(MAP)?;
                    ensure!(response.code == 200, "{response:?}");
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        };
        let clients = vec![client(), client()];
        Ok(Self { stop, sent, clients })
    }

    /// Ends them. Every read must have succeeded, and there must have been more than a hundred.
    pub fn all_succeeded(self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().map_err(|_| anyhow!("a client has panicked"))??;
        }
        let sent = self.sent.load(Ordering::Relaxed);
        ensure!(sent > 100, "only {sent} requests");
        Ok(())
    }
}
