//! The tokens that callers are known by: those of the configuration and those of a file, which is
//! read again when it changes. A file that cannot be read any more changes nothing.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tidegate_core::Time;

use crate::config::{ApiToken, Config, TokenFile, TokenScope};
use crate::error::{Error, ErrorCode, Result};
use crate::file_watch::{FileMark, Reload};

/// The tokens of a server.
pub(crate) struct Tokens {
    configured: Vec<Arc<ApiToken>>,
    file: Option<TokenFile>,
    /// What the file was when it was read last, if it was there; `None` before that.
    mark: Mutex<Option<Option<FileMark>>>,
    all: RwLock<Arc<[Arc<ApiToken>]>>,
}

impl Tokens {
    /// Reads the file, if there is one.
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let configured: Vec<_> = config.tokens.iter().cloned().map(Arc::new).collect();
        let file = config.auth.tokens_file.clone();
        let all = RwLock::new(configured.clone().into());
        let tokens = Self { configured, file, mark: Mutex::new(None), all };
        tokens.reload()?;
        Ok(tokens)
    }

    /// Whether callers need a token. An empty file does not open the server.
    pub(crate) fn are_required(&self) -> bool {
        !self.configured.is_empty() || self.file.is_some()
    }

    /// Finds the token of a credential. Every hash is compared in full, so the time reveals nothing
    /// about a near match.
    pub(crate) fn find(&self, credential: &str) -> Option<Arc<ApiToken>> {
        let hash: [u8; 32] = Sha256::digest(credential.as_bytes()).into();
        let tokens = Arc::clone(&*self.all.read().unwrap_or_else(PoisonError::into_inner));
        let mut found = u64::MAX;
        for (place, token) in (0_u64..).zip(&*tokens) {
            let same: Choice = hash.ct_eq(&token.hash);
            found.conditional_assign(&place, same);
        }
        usize::try_from(found).ok().and_then(|place| tokens.get(place)).cloned()
    }

    /// Whether a token of this name is valid.
    pub(crate) fn is_valid(&self, name: &str, now: Time) -> bool {
        let tokens = self.all.read().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().any(|token| *token.name == *name && !token.is_expired(now))
    }

    /// Whether all tokens of a name have a scope; false if there are none.
    pub(crate) fn have_scope(&self, name: &str, scope: TokenScope) -> bool {
        let tokens = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut named = tokens.iter().filter(|token| *token.name == *name).peekable();
        named.peek().is_some() && named.all(|token| token.scopes.contains(&scope))
    }
}

impl Reload for Tokens {
    const WHAT: &str = "the tokens";

    fn reload(&self) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let mark = FileMark::of(file.path());
        let mut known = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == Some(mark) {
            return Ok(false);
        }
        // Remembered also when it cannot be read, so that the log says so once.
        *known = Some(mark);
        let records = file.read().map_err(|problems| {
            Error::new(ErrorCode::BadConfig, format!("The tokens cannot be used: {problems}"))
        })?;
        let mut all = self.configured.clone();
        for record in records {
            if let Some(same) = self.configured.iter().find(|known| known.name == record.token.name) {
                let path = file.path().display();
                let message = format!("{path} has a token {:?}, and so has the configuration.", same.name);
                return Err(Error::new(ErrorCode::BadConfig, message));
            }
            all.push(Arc::new(record.token));
        }
        *self.all.write().unwrap_or_else(PoisonError::into_inner) = all.into();
        Ok(true)
    }
}
