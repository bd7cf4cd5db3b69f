//! The file of the tokens that `tidegate token` manages: `[[token]]` blocks with hashes. It is
//! replaced as a whole, so that a server never reads half of it, and only its owner may write it.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tidegate_core::Time;
use tidegate_core::fingerprint::hex;

use super::problem::{ConfigProblem, ConfigProblems, SourceLocation, SourceText};
use super::read::reject_duplicates;
use super::section::Section;
use super::token::{self, ApiToken};
use super::{ParseContext, parse, read_file};

/// The most tokens in a file: each request is compared with all of them.
const TOKENS_MAX: usize = 1_000;
/// The permissions of a new file: its owner may read and write it.
#[cfg(unix)]
const MODE: u32 = 0o600;
/// The permissions of others that a file must not have.
#[cfg(unix)]
const OTHERS_WRITE: u32 = 0o022;

const HEAD: &str = "# The tokens of a Tidegate server, as `tidegate token` keeps them: hashes only.\n";

/// A token in the file.
#[derive(Clone, Debug)]
pub struct TokenRecord {
    /// The token, by its hash.
    pub token: ApiToken,
    /// When it was created.
    pub created_at: Option<Time>,
}

/// The file of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Names a file, which need not exist.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the tokens; a file that does not exist has none.
    ///
    /// # Errors
    /// When it cannot be read, has something else in it, or can be written by others.
    pub fn read(&self) -> Result<Vec<TokenRecord>, ConfigProblems> {
        match fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.problem(format!("It cannot be read: {error}."))),
            Ok(found) => self.check_permissions(&found)?,
        }
        let text = read_file(&self.0)?;
        let name = self.0.display().to_string();
        let source = SourceText { name: &name, text: &text };
        let records = parse(source, "", &|_| None, &[], |root, reading| Some(read_all(root, reading)))?;
        if records.len() > TOKENS_MAX {
            return Err(self.problem(format!("It has {} tokens; the most is {TOKENS_MAX}.", records.len())));
        }
        Ok(records)
    }

    /// Adds a token.
    ///
    /// # Errors
    /// When there is one of that name, or the file cannot be read or written.
    pub fn add(&self, record: TokenRecord) -> Result<(), ConfigProblems> {
        self.update(|records| {
            let name = &record.token.name;
            if records.iter().any(|known| known.token.name == *name) {
                return Err(self.problem(format!("It has a token called {name:?} already.")));
            }
            if records.len() == TOKENS_MAX {
                return Err(self.problem(format!("It has {TOKENS_MAX} tokens, which is the most.")));
            }
            records.push(record);
            Ok(())
        })
    }

    /// Removes the token of this name; returns whether there was one.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<bool, ConfigProblems> {
        self.update(|records| {
            let count = records.len();
            records.retain(|record| record.token.name != name);
            Ok(records.len() < count)
        })
    }

    fn problem(&self, message: String) -> ConfigProblems {
        let at = SourceLocation::outside_file(self.0.display().to_string());
        ConfigProblems(vec![ConfigProblem { at, key_path: String::new(), message }])
    }

    #[cfg(unix)]
    fn check_permissions(&self, found: &fs::Metadata) -> Result<(), ConfigProblems> {
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
        if mode & OTHERS_WRITE == 0 {
            return Ok(());
        }
        let message = "Others may write it, and could give themselves a token: chmod 600 it.";
        Err(self.problem(message.to_owned()))
    }

    #[cfg(not(unix))]
    fn check_permissions(&self, _: &fs::Metadata) -> Result<(), ConfigProblems> {
        Ok(())
    }

    /// Changes the file, one process at a time.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, ConfigProblems>,
    ) -> Result<T, ConfigProblems> {
        let failed = |error: io::Error| self.problem(format!("It cannot be written: {error}."));
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        let lock = File::open(folder.unwrap_or_else(|| Path::new("."))).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut records = self.read()?;
        let changed = change(&mut records)?;
        self.write(&records).map_err(failed)?;
        // A rename is durable when its folder is.
        lock.sync_all().map_err(failed)?;
        Ok(changed)
    }

    fn write(&self, records: &[TokenRecord]) -> io::Result<()> {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let fresh = self.0.with_file_name(name);
        // Of an update that was interrupted.
        let _ = fs::remove_file(&fresh);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, MODE);
        let mut file = options.open(&fresh)?;
        file.write_all(format_all(records).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &self.0)
    }
}

fn read_all(root: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Vec<TokenRecord> {
    let sections = root.sections("token", &mut reading.problems);
    reject_duplicates(&sections, &mut reading.problems);
    sections.into_iter().filter_map(|section| read_record(section, reading)).collect()
}

fn read_record(mut section: Section<'_>, reading: &mut ParseContext<'_>) -> Option<TokenRecord> {
    let created_at = token::read_time(&mut section, "created_at", &mut reading.problems);
    let token = token::read_hashed(section, reading)?;
    Some(TokenRecord { token, created_at })
}

fn format_all(records: &[TokenRecord]) -> String {
    let mut text = HEAD.to_owned();
    for TokenRecord { token, created_at } in records {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let scopes: Vec<_> = token.scopes.iter().map(|scope| quoted(scope.as_str())).collect();
        let lines = [
            Some(format!("name = {}", quoted(&token.name))),
            Some(format!("hash = \"sha256:{}\"", hex(&token.hash))),
            Some(format!("scopes = [{}]", scopes.join(", "))),
            token.tenant.as_deref().map(|tenant| format!("tenant = {}", quoted(tenant))),
            created_at.map(|at| format!("created_at = \"{at}\"")),
            token.expires_at.map(|at| format!("expires_at = \"{at}\"")),
        ];
        text.push_str("\n[[token]]\n");
        for line in lines.into_iter().flatten() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
