//! Two connections that changed their protocol, joined until either of them ends. What is said on them is nobody's business.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::ConnectionPermit;

/// Joins both, keeping the client's place as long.
pub(super) async fn relay_upgraded(client: OnUpgrade, upstream: OnUpgrade, place: Option<ConnectionPermit>) {
    match tokio::try_join!(client, upstream) {
        Ok((client, upstream)) => {
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            // Either may end as it likes.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
        }
        Err(error) => tracing::debug!(%error, "a connection did not change its protocol"),
    }
    drop(place);
}
