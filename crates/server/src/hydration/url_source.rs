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
        let mut config = UpstreamConfig::new("source", format!("{scheme}://{authority}"));
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
        let answer = self.sender.exchange(request, call).await.map_err(|missed| format!("{missed:?}"))?;
        match (answer.status, &answer.content) {
            (StatusCode::OK, Content::Whole(body)) => {
                let (answer, module) = read_answer(question, body)?;
                *self.module.lock().unwrap_or_else(PoisonError::into_inner) = Some(module);
                Ok(answer)
            }
            (StatusCode::ACCEPTED, _) => Ok(SourceAnswer::Later),
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
    let event = EntityEvent::decode(body)?;
    let (asked, told) = (&question.key, event.key());
    if (asked.entity_type(), asked.id()) != (told.entity_type(), told.id()) {
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
