//! A source behind a URL: it gets the question as a POST and answers with an envelope, or with 202
//! and publishes later. An error is no answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{StatusCode, Uri};
use tidegate_core::OnUnknown;
use tidegate_hydration::{
    EntityEvent, EntityQuestion, EntitySource, SourceAnswer, SourceError, SourceFuture,
};
use tidegate_store::Clock;
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::http::response::Content;
use tidegate_upstream::http::send::Sender;
use tidegate_upstream::{Body, Call, HttpRequest, Method};

use crate::error::{Error, ErrorCode, Result};

/// How long a source may take: longer than any flight waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer, as on every bus.
const ANSWER_LEN_MAX: usize = tidegate_core::bounds::BUS_PAYLOAD_LEN_MAX;

pub(super) struct UrlSource {
    sender: Sender,
    path: String,
    clock: Arc<dyn Clock>,
    /// The module that it says it is, as of its last answer.
    module: Mutex<Option<String>>,
}

impl UrlSource {
    pub(super) fn new(url: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let refuse = |problem: &str| {
            Error::new(ErrorCode::Invalid, format!("The field \"url\" {problem}.")).field("url")
        };
        let uri: Uri = url.parse().map_err(|_| refuse("is not a URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refuse("must begin with http:// or https://"));
        };
        // The log names the host, and not the rest of the URL, which may be a secret.
        let mut config = UpstreamConfig::new(authority.as_str(), format!("{scheme}://{authority}"));
        (config.timeout, config.response_max_bytes) = (TIMEOUT, ANSWER_LEN_MAX);
        if authority.as_str().contains('@') {
            return Err(refuse("holds a user or a password; a source is called without a credential"));
        }
        let sender = Sender::new(&config)
            .map_err(|refusal| refuse(&format!("is refused: {}", refusal.message.trim_end_matches('.'))))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let question = HttpRequest::new(Method::Post, path.clone());
        question
            .validate()
            .and_then(|()| sender.check(&question))
            .map_err(|refusal| refuse(&format!("is refused: {}", refusal.message.trim_end_matches('.'))))?;
        Ok(Self { sender, path, clock, module: Mutex::default() })
    }

    async fn ask(&self, question: &EntityQuestion) -> std::result::Result<SourceAnswer, SourceError> {
        let body = EntityEvent::Unknown(question.clone()).encode();
        let mut request = HttpRequest::new(Method::Post, self.path.clone());
        request.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        request.body = Body::Bytes(body);
        let call = Call::new(question.correlation_id.as_str(), &[], self.clock.now())
            .with_on_unknown(OnUnknown::Repeat);
        let answer = self.sender.exchange(request, call).await;
        let answer = answer.map_err(|missed| missed.fault.message.trim_end_matches('.').to_owned())?;
        match (answer.status, &answer.content) {
            (StatusCode::OK, Content::Whole(body)) => {
                let (answer, module) = read_answer(question, body)?;
                *self.module.lock().unwrap_or_else(PoisonError::into_inner) = Some(module);
                Ok(answer)
            }
            (StatusCode::ACCEPTED, _) => Ok(SourceAnswer::Later),
            (StatusCode::OK, Content::TooLarge { most }) => {
                Err(format!("its answer is larger than {most} bytes").into())
            }
            (StatusCode::OK, Content::Cut(reason)) => Err(format!("its answer was cut: {reason}").into()),
            (status, _) => Err(format!("it answered with status {status}").into()),
        }
    }
}

/// Reads the answer, which must be about the entity that was asked for, and the module that gave
/// it.
fn read_answer(
    question: &EntityQuestion,
    body: &[u8],
) -> std::result::Result<(SourceAnswer, String), SourceError> {
    let event = EntityEvent::decode_answer(body, question)?;
    if *event.key() != question.key {
        return Err("it answered about another entity".into());
    }
    match event {
        EntityEvent::Updated(update) => {
            let answer = SourceAnswer::Found { data: update.data, version: update.stamp.version };
            Ok((answer, update.source_module))
        }
        EntityEvent::NotFound(absence) => {
            let answer = SourceAnswer::NotFound { reason: absence.reason, version: absence.stamp.version };
            Ok((answer, absence.source_module))
        }
        EntityEvent::Unknown(_) => Err("it answered with a question".into()),
    }
}

impl EntitySource for UrlSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(self.ask(question))
    }

    fn module(&self) -> Option<String> {
        self.module.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use tidegate_hydration::{CorrelationId, EntityKey, HydrationMode};
    use tidegate_store::WallClock;

    use super::*;

    async fn failure(url: &str) -> String {
        let source = UrlSource::new(url, Arc::new(WallClock)).unwrap();
        let question = EntityQuestion {
            key: EntityKey::new("default", "customer", "c-7").unwrap(),
            correlation_id: CorrelationId::new("q").unwrap(),
            requester_module: "orders".to_owned(),
            mode: HydrationMode::Full,
        };
        source.ask(&question).await.unwrap_err().to_string()
    }

    /// HYD-15: why a source failed is said in a sentence, with its host and without the rest of its
    /// URL.
    #[tokio::test]
    async fn hyd_15_a_failure_is_logged_as_a_sentence() {
        let refused = failure("http://127.0.0.1:1/ask?key=s3cret").await;
        assert!(refused.contains("127.0.0.1:1 was not sent: "), "{refused}");
        assert!(!refused.contains("NoResponse") && !refused.contains("s3cret"), "{refused}");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let large = post(|| async { "x".repeat(ANSWER_LEN_MAX + 1) });
        let router = Router::new().route("/large", large);
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let large = failure(&format!("http://{addr}/large")).await;
        assert_eq!(large, "its answer is larger than 1048576 bytes");
        server.abort();
    }
}
