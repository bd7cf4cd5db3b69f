//! A source behind a URL: it gets the question as a POST and answers with an envelope, or with 202
//! and publishes later. An error is no answer.

use std::sync::Arc;
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
        let mut config = UpstreamConfig::new("source", format!("{scheme}://{authority}"));
        (config.timeout, config.response_max_bytes) = (TIMEOUT, ANSWER_LEN_MAX);
        let sender =
            Sender::new(&config).map_err(|refusal| refuse(&format!("is refused: {}", refusal.message)))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { sender, path, clock })
    }

    async fn ask(&self, question: &EntityQuestion) -> std::result::Result<SourceAnswer, SourceError> {
        let body = EntityEvent::Unknown(question.clone()).encode();
        let mut request = HttpRequest::new(Method::Post, self.path.clone());
        request.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        request.body = Body::Bytes(body);
        let call = Call::new(question.correlation_id.as_str(), &[], self.clock.now())
            .with_on_unknown(OnUnknown::Repeat);
        let answer = self.sender.exchange(request, call).await.map_err(|missed| format!("{missed:?}"))?;
        match (answer.status, &answer.content) {
            (StatusCode::OK, Content::Whole(body)) => read_answer(question, body),
            (StatusCode::ACCEPTED, _) => Ok(SourceAnswer::Later),
            (status, _) => Err(format!("it answered with status {status}").into()),
        }
    }
}

/// Reads the answer, which must be about the entity that was asked for.
fn read_answer(question: &EntityQuestion, body: &[u8]) -> std::result::Result<SourceAnswer, SourceError> {
    let event = EntityEvent::decode(body)?;
    let (asked, told) = (&question.key, event.key());
    if (asked.entity_type(), asked.id()) != (told.entity_type(), told.id()) {
        return Err("it answered about another entity".into());
    }
    match event {
        EntityEvent::Updated(update) => {
            Ok(SourceAnswer::Found { data: update.data, version: update.stamp.version })
        }
        EntityEvent::NotFound(absence) => {
            Ok(SourceAnswer::NotFound { reason: absence.reason, version: absence.stamp.version })
        }
        EntityEvent::Unknown(_) => Err("it answered with a question".into()),
    }
}

impl EntitySource for UrlSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(self.ask(question))
    }
}
