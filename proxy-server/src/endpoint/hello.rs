//! Reads the server name (SNI) of a `ClientHello` before TLS begins.

use std::io;

use ops::tls::ReadAhead;
use tokio::io::AsyncRead;
use tokio_rustls::rustls::server::Acceptor;

/// Reads the `ClientHello` and returns its server name, if it has one. All bytes stay in `socket`.
///
/// If the bytes are not TLS, returns `None`. The handshake then fails with the right alert.
pub(super) async fn server_name<S>(socket: &mut ReadAhead<S>) -> io::Result<Option<String>>
where
    S: AsyncRead + Unpin,
{
    let (mut acceptor, mut seen) = (Acceptor::default(), 0);
    loop {
        let peeked = socket.peek_more().await?;
        let mut new = &peeked[seen..];
        seen = peeked.len();
        while !new.is_empty() {
            if acceptor.read_tls(&mut new).is_err() {
                return Ok(None);
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(accepted.client_hello().server_name().map(str::to_owned)),
                Ok(None) => {}
                Err(_) => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ops::files::Watched;
    use ops::pki::Authority;
    use ops::tls::{ServerCa, TlsVersions, client_config};
    use rustls_pki_types::ServerName;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio_rustls::rustls::ClientConnection;

    use super::*;

    fn hello(name: &str) -> Vec<u8> {
        let authority = Authority::create("ca", std::time::Duration::from_secs(3600)).unwrap();
        let ca = Watched::fixed(ServerCa::from_pem(authority.certificate_pem().as_bytes()).unwrap());
        let config = client_config(ca, None, &[], TlsVersions::Tls12And13);
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// Sends `bytes` in pieces, and reads the name.
    async fn named(bytes: &[u8], piece: usize) -> io::Result<Option<String>> {
        let (mut far, near) = duplex(64);
        let mut socket = ReadAhead::new(near);
        let send = async {
            for piece in bytes.chunks(piece) {
                far.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(far);
        };
        let (name, ()) = tokio::join!(server_name(&mut socket), send);
        let mut kept = Vec::new();
        socket.read_to_end(&mut kept).await.unwrap();
        assert_eq!(kept, bytes);
        name
    }

    #[tokio::test]
    async fn the_name_is_read_and_the_bytes_stay() {
        let (with, without) = (hello("ke-beijing.atoll.internal"), hello("127.0.0.1"));
        for piece in [1, 7, 64, 10_000] {
            assert_eq!(named(&with, piece).await.unwrap().as_deref(), Some("ke-beijing.atoll.internal"));
            assert_eq!(named(&without, piece).await.unwrap(), None);
        }
        assert_eq!(named(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", 100).await.unwrap(), None);
        let half = &with[..with.len() / 2];
        assert_eq!(named(half, 100).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
