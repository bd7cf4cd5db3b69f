//! Completes an operation whose job ends elsewhere: called by the service that finished the job,
//! with the completion token of the attempt, or by a caller whose token has the scope.

use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate::{Completion, CompletionProof};
use tidegate_core::{Fault, FaultClass, OperationId};

use super::{HandlerResult, parse_id};
use crate::edge::auth::Caller;
use crate::edge::completion_token;
use crate::edge::content::RequestBody;
use crate::error::{Error, Result};
use crate::state::SharedPartition;
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read};
use crate::wire::response::CompletionOut;
use crate::wire::work::{encode_result, parse_fault};

const NAMES: [&str; 3] = ["outcome", "result", "fault"];

/// The outcome that a completion reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportedOutcome {
    Succeeded,
    Failed,
    Retry,
}

const OUTCOMES: [(&str, ReportedOutcome); 3] = [
    ("succeeded", ReportedOutcome::Succeeded),
    ("failed", ReportedOutcome::Failed),
    ("retry", ReportedOutcome::Retry),
];

pub(super) async fn complete(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    head: Parts,
    body: RequestBody,
) -> HandlerResult {
    let id = parse_id(&text)?;
    completion_token::check_query(&head)?;
    let proof = match completion_token::find(&head) {
        Some(token) => CompletionProof::Token(token),
        // Admitted for its token: without one there is no proof.
        None if &*caller.0 == completion_token::CALLER => CompletionProof::Token(String::new()),
        None => CompletionProof::Authorized,
    };
    let body = body.read().await?;
    let (completion, result) = match (parse(&body), &proof) {
        (Ok(parsed), _) => parsed,
        (Err(error), CompletionProof::Token(token)) => {
            return receive_callback(&app, id, token, &body, error).await;
        }
        (Err(error), CompletionProof::Authorized) => return Err(error.into()),
    };
    let receipt = app.engine.complete(id, proof, completion, result).await?;
    tracing::info!(operation_id = %id, by = &*caller.0, applied = receipt.applied, "a completion");
    Ok(Json(CompletionOut::new(&receipt)).into_response())
}

/// Receives a callback in the service's own format: the rules of the submission say how to read it.
async fn receive_callback(
    app: &SharedPartition,
    id: OperationId,
    token: &str,
    body: &[u8],
    mut error: Error,
) -> HandlerResult {
    let encode = |end: &Completion| {
        let json = serde_json::from_slice::<&RawValue>(body);
        json.map_or_else(|_| Bytes::new(), |json| completion_result(end, json))
    };
    let Some(receipt) = app.engine.receive_callback(id, token, body, encode).await? else {
        if has_known_outcome(body) {
            tracing::warn!(operation_id = %id, error = error.message, "a completion was refused");
            return Err(error.into());
        }
        tracing::warn!(operation_id = %id, "a callback was refused: nothing says how to read its format");
        error.message.push_str(
            " For a service with a format of its own, submit the operation with completion.callback.done or completion.poll.",
        );
        return Err(error.into());
    };
    tracing::info!(operation_id = %id, applied = receipt.applied, "a callback in the service's own format");
    Ok(Json(CompletionOut::new(&receipt)).into_response())
}

/// Whether a body is meant as a completion, although something is wrong with it.
fn has_known_outcome(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    OUTCOMES.iter().any(|(word, _)| body["outcome"] == *word)
}

/// Parses a completion and the result to keep.
fn parse(body: &[u8]) -> Result<(Completion, Bytes)> {
    let Fields { values: [outcome, result, fault], mut problems } = read(body, &NAMES)?;
    let word = Field { name: NAMES[0], raw: outcome }.word(&OUTCOMES);
    let outcome = problems.check(word.and_then(|word| word.map(Some).ok_or_else(|| missing("outcome"))));
    let class = match outcome {
        Some(ReportedOutcome::Retry) => FaultClass::Transient,
        _ => FaultClass::Validation,
    };
    let fault = problems.check(parse_fault(Field { name: NAMES[2], raw: fault }, class));
    problems.finish()?;
    let fault = || fault.unwrap_or_else(|| Fault::new(class, "the job failed, as its completion reports"));
    let completion = match outcome.ok_or_else(|| missing("outcome"))? {
        ReportedOutcome::Succeeded => Completion::Succeeded,
        ReportedOutcome::Failed => Completion::Failed(fault()),
        ReportedOutcome::Retry => Completion::Retry(fault()),
    };
    let result = result.map_or_else(Bytes::new, |result| completion_result(&completion, result));
    Ok((completion, result))
}

/// The result of a job: of one that succeeded, as if it were the response of the service.
fn completion_result(end: &Completion, result: &RawValue) -> Bytes {
    encode_result(matches!(end, Completion::Succeeded).then_some(200), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_is_read_or_refused_by_field() {
        let (completion, result) = parse(br#"{"outcome":"succeeded","result":{"n":1.10}}"#).unwrap();
        assert_eq!(completion, Completion::Succeeded);
        assert!(result.ends_with(br#""body":{"n":1.10}}"#), "{result:?}");
        let failed = parse(br#"{"outcome":"failed","fault":{"class":"conflict","message":"no"}}"#).unwrap();
        assert_eq!(failed.0, Completion::Failed(Fault::new(FaultClass::Conflict, "no")));
        for retry in [r#"{"outcome":"retry"}"#, r#"{"outcome":"retry","fault":{"message":"busy"}}"#] {
            let retry = parse(retry.as_bytes()).unwrap().0;
            assert!(matches!(retry, Completion::Retry(fault) if fault.class == FaultClass::Transient));
        }
        let table = [
            ("{}", "outcome"),
            (r#"{"outcome":"done"}"#, "outcome"),
            (r#"{"outcome":"failed","why":1}"#, "why"),
            (r#"{"outcome":"failed","fault":{"class":"bad","message":"x"}}"#, "fault.class"),
            (r#"{"outcome":"failed","fault":{"class":"conflict"}}"#, "fault.message"),
        ];
        for (json, field) in table {
            assert_eq!(parse(json.as_bytes()).unwrap_err().field.as_deref(), Some(field), "{json}");
        }
        assert!(has_known_outcome(br#"{"outcome":"failed","fault":{"class":"conflict"}}"#));
        for other in [&b"{\"outcome\":\"done\"}"[..], b"{}", b"[1]", b"?"] {
            assert!(!has_known_outcome(other), "{other:?}");
        }
    }
}
