//! The proxy's own error responses, and whether the request can have reached the upstream.

use std::error::Error;
use std::time::Duration;

use http::{Extensions, Response, StatusCode};
use hyper_util::client::legacy;
use tidegate_core::{AttemptEnd, OutcomeClass};

use super::connect::{ConnectError, ConnectErrorKind};
use super::unprocessed::is_unprocessed;
use crate::body::LayerBody;
use crate::key::IdempotencyKey;
use crate::policy::RefusalDialect;
use crate::refusal::ErrorAnswer;

/// What an error response says of its request, and in which dialect.
#[derive(Clone, Debug)]
pub(super) struct FailedRequest {
    pub key: Option<IdempotencyKey>,
    pub dialect: RefusalDialect,
}

impl FailedRequest {
    /// The request with these extensions, which the layer has left there.
    pub(super) fn new(key: Option<IdempotencyKey>, extensions: &Extensions) -> Self {
        Self { key, dialect: extensions.get().copied().unwrap_or(RefusalDialect::Tidegate) }
    }
}

/// Why there is no response from the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyError {
    /// There is no connection, so nothing was sent.
    Unreachable(ConnectErrorKind),
    /// There was a connection, and it did not accept the request.
    NotTaken,
    /// The request was sent, and then the connection ended.
    Reset,
    /// The request was sent, and then nothing came for this long.
    TimedOut(Duration),
    /// The client's own body failed while it was forwarded.
    Incomplete,
    /// The client requested a tunnel.
    Tunnel,
    /// The path cannot be forwarded.
    BadTarget,
    /// The request has passed this proxy before.
    Loop,
    /// The request is HTTP/1.1 and names no host, or several.
    NoHost,
}

impl ProxyError {
    /// Classifies an error of the HTTP client.
    pub(super) fn of(error: &legacy::Error, request_broke: bool) -> Self {
        tracing::debug!(%error, cause = error.source().map(tracing::field::display), "the upstream did not respond");
        if request_broke {
            return Self::Incomplete;
        }
        if let Some(failed) = connect_error(error) {
            return Self::Unreachable(failed.why);
        }
        if error.is_connect() {
            return Self::Unreachable(ConnectErrorKind::Other);
        }
        if is_unprocessed(error) { Self::NotTaken } else { Self::Reset }
    }

    fn attempt_end(self) -> AttemptEnd {
        match self {
            Self::Unreachable(_)
            | Self::NotTaken
            | Self::Tunnel
            | Self::BadTarget
            | Self::Loop
            | Self::NoHost => AttemptEnd::NotSent,
            Self::Reset | Self::TimedOut(_) | Self::Incomplete => AttemptEnd::NoAnswer,
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Unreachable(_) | Self::NotTaken | Self::Reset => StatusCode::BAD_GATEWAY,
            Self::TimedOut(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Incomplete | Self::BadTarget | Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Tunnel => StatusCode::NOT_IMPLEMENTED,
            Self::Loop => StatusCode::LOOP_DETECTED,
        }
    }

    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Unreachable(_) | Self::NotTaken => "UPSTREAM_UNREACHABLE",
            Self::Reset => "UPSTREAM_RESET",
            Self::TimedOut(_) => "UPSTREAM_TIMEOUT",
            Self::Incomplete => "REQUEST_INCOMPLETE",
            Self::Tunnel => "NO_TUNNELS",
            Self::BadTarget => "INVALID_TARGET",
            Self::Loop => "UPSTREAM_LOOP",
            Self::NoHost => "INVALID_HOST",
        }
    }

    fn detail(self) -> String {
        match self {
            Self::Unreachable(ConnectErrorKind::Refused) => {
                "The service behind the proxy refused the connection; nothing was sent to it".into()
            }
            Self::Unreachable(ConnectErrorKind::UnknownHost) => {
                "The name of the service behind the proxy was not found; nothing was sent to it".into()
            }
            Self::Unreachable(ConnectErrorKind::Tls) => {
                "No trusted TLS connection to the service behind the proxy could be made; nothing was sent to it".into()
            }
            Self::Unreachable(ConnectErrorKind::Other) | Self::NotTaken => {
                "The service behind the proxy cannot be reached; nothing was sent to it".into()
            }
            Self::Reset => {
                "The connection to the service behind the proxy ended before it responded; the request may have been executed"
                    .into()
            }
            Self::TimedOut(limit) => format!(
                "The service behind the proxy was silent for {limit:?}; the request may have been executed"
            ),
            Self::Incomplete => "The request body ended too early".into(),
            Self::Tunnel => "This proxy does not support tunnels".into(),
            Self::BadTarget => {
                "The path of the request cannot be forwarded: it is invalid or leads outside of the configured path".into()
            }
            Self::Loop => {
                "The request came back to the proxy that forwarded it: the upstream leads back to the proxy".into()
            }
            Self::NoHost => "A request over HTTP/1.1 must have one Host header".into(),
        }
    }

    /// Builds the response to a request, with what is known of it in its extensions.
    pub(super) fn answer(self, request: &FailedRequest) -> Response<LayerBody> {
        let (detail, code) = (self.detail(), self.code());
        let key = request.key.as_ref().map(IdempotencyKey::as_str);
        let error = ErrorAnswer { status: self.status(), code, detail: &detail, hint: None, key };
        let mut response = error.into_response(request.dialect);
        response.extensions_mut().insert(OutcomeClass::of(self.attempt_end()));
        metrics::counter!("tidegate_proxy_faults_total", "code" => code).increment(1);
        response
    }
}

/// The connection error behind an error, if that is the cause.
pub(super) fn connect_error(error: &legacy::Error) -> Option<&ConnectError> {
    error.source()?.downcast_ref()
}
