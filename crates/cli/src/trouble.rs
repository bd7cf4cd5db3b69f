//! Why a command did not do what it was asked: a code if there is one, a sentence, and what to do about it.

use crate::output::Output;

/// A failure of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub code: Option<String>,
    pub message: String,
    pub hints: Vec<String>,
    pub exit: u8,
}

impl Trouble {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: None, message: message.into(), hints: Vec::new(), exit: 1 }
    }

    /// It was called in a wrong way.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: 2, ..Self::new(message) }
    }

    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn print(&self, output: &Output) {
        let code = self.code.as_ref().map_or_else(String::new, |code| format!("[{code}]"));
        output.say(&format!("{}: {}", output.red(&format!("error{code}")), self.message));
        for hint in &self.hints {
            output.say(&format!("  {}: {hint}", output.bold("hint")));
        }
    }
}

impl From<tidegate::Error> for Trouble {
    fn from(error: tidegate::Error) -> Self {
        Self::new(error.message).code(error.code.to_string())
    }
}
