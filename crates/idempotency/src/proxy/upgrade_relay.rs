//! Joins two upgraded connections until either of them ends. Their content is opaque.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::ConnectionPermit;

/// Joins both connections and holds the client's permit meanwhile.
pub(super) async fn relay_upgraded(client: OnUpgrade, upstream: OnUpgrade, place: Option<ConnectionPermit>) {
    match tokio::try_join!(client, upstream) {
        Ok((client, upstream)) => {
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            // Either side may end it in any way.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
        }
        Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
    }
    drop(place);
}
