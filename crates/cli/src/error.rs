//! The error of a command: an optional code, a message, and hints about what to do.

use serde_json::{Value, json};
use tidegate_core::ErrorCode;

use crate::output::Output;

/// A failure of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CliError {
    pub code: Option<String>,
    /// A code for scripts, where the message says everything to people.
    pub quiet_code: Option<ErrorCode>,
    pub message: String,
    pub hints: Vec<String>,
    /// Structured details, for scripts.
    pub detail: Option<Value>,
    /// The error as the server reported it.
    pub reported: Option<Box<Value>>,
    pub exit: u8,
    /// Whether a server refused the request, so that it will refuse it again.
    pub is_refused: bool,
}

impl CliError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            code: None,
            quiet_code: None,
            message: message.into(),
            hints: Vec::new(),
            detail: None,
            reported: None,
            exit: 1,
            is_refused: false,
        }
    }

    /// An error of usage: exits with 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: 2, ..Self::new(message) }
    }

    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets the code for scripts.
    pub(crate) fn coded(mut self, code: ErrorCode) -> Self {
        self.quiet_code = Some(code);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) const fn refused(mut self, is_refused: bool) -> Self {
        self.is_refused = is_refused;
        self
    }

    pub(crate) fn detail(mut self, detail: Value) -> Self {
        self.detail = Some(detail).filter(|detail| !detail.is_null());
        self
    }

    /// Keeps the error as the server reported it.
    pub(crate) fn reported(mut self, error: Value) -> Self {
        self.reported = Some(Box::new(error));
        self
    }

    /// Prints the error on stderr; with `--json` in the same shape as the server's errors.
    pub(crate) fn print(&self, output: &Output) {
        if output.json {
            return output.print_status(&self.json().to_string());
        }
        let code = self.code.as_ref().map_or_else(String::new, |code| format!("[{code}]"));
        output.print_status(&format!("{}: {}", output.red(&format!("error{code}")), self.message));
        for hint in &self.hints {
            output.print_status(&format!("  {}: {hint}", output.bold("hint")));
        }
    }

    fn json(&self) -> Value {
        let code = self.code.clone().or_else(|| self.quiet_code.map(|code| code.to_string()));
        let own = || json!({ "code": code, "message": self.message });
        let mut error = self.reported.as_deref().cloned().unwrap_or_else(own);
        if let Some(detail) = &self.detail {
            error["detail"] = detail.clone();
        }
        if !self.hints.is_empty() {
            error["hints"] = json!(self.hints);
        }
        json!({ "error": error })
    }
}

impl From<tidegate::Error> for CliError {
    fn from(error: tidegate::Error) -> Self {
        Self::new(error.message).code(error.kind.code().to_string())
    }
}

impl From<tidegate_server::Error> for CliError {
    fn from(error: tidegate_server::Error) -> Self {
        Self::new(error.message).code(error.code.to_string())
    }
}
