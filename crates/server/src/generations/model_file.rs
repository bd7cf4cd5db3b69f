//! The models of the configuration file, which is read again when it changes. A file with an error
//! changes nothing. Everything else in the file is read at the start only.

use std::sync::{Mutex, PoisonError};

use tidegate_dispatch::Dispatch;

use crate::config::{Config, ConfigFile};
use crate::error::{Error, ErrorCode, Result};
use crate::file_watch::{FileMark, Reload};

/// The file that the models of a dispatch come from.
pub(crate) struct ModelFile {
    file: ConfigFile,
    dispatch: Dispatch,
    seen: Mutex<SeenFile>,
}

/// What a file was at the last look, and when it was read last.
#[derive(Default)]
struct SeenFile {
    now: Option<FileMark>,
    read: Option<FileMark>,
}

impl ModelFile {
    pub(crate) fn new(file: ConfigFile, dispatch: Dispatch) -> Self {
        Self { file, dispatch, seen: Mutex::default() }
    }

    /// Reads the models, and uses them if they can work.
    fn read(&self) -> Result<bool> {
        let bad = |problem: String| unchanged(&problem);
        let config = Config::load(Some(&self.file.path), &self.file.overrides);
        let models = config.map_err(|problems| bad(problems.to_string()))?.generations.dispatch.models;
        if models.is_empty() {
            return Err(bad("the file has none.".to_owned()));
        }
        let diff = self.dispatch.set_models(models).map_err(|error| {
            bad(format!("{error} The providers of a chain must have been configured at the start."))
        })?;
        for (models, message) in [
            (&diff.added, "models were added"),
            (&diff.changed, "models have changed"),
            (&diff.removed, "models were removed"),
        ] {
            if !models.is_empty() {
                tracing::info!(models = models.join(", "), "{message}");
            }
        }
        Ok(!diff.is_empty())
    }
}

fn unchanged(problem: &str) -> Error {
    Error::new(ErrorCode::BadConfig, format!("The models stay as they are: {problem}"))
}

impl Reload for ModelFile {
    const WHAT: &str = "the models";

    fn reload(&self) -> Result<bool> {
        let mark = FileMark::of(&self.file.path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that was written between two looks may be incomplete, or gone for a moment.
        let is_settled = seen.now == mark;
        seen.now = mark;
        if !is_settled || seen.read == mark {
            return Ok(false);
        }
        // Remembered also when it cannot be used, so that the log says so once.
        seen.read = mark;
        drop(seen);
        if mark.is_none() { Err(unchanged("the file is gone.")) } else { self.read() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_dispatch::storage::FolderStorage;

    use super::*;
    use crate::config::Overrides;

    fn text(provider: &str) -> String {
        let provider_of = |name: &str| {
            format!(
                "[provider.{name}]\nadapter = \"fal\"\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"PATH\"\n"
            )
        };
        let known: String = ["acme", "globex"].map(provider_of).concat();
        let other = if provider == "hooli" { provider_of(provider) } else { String::new() };
        format!("{known}{other}[model.flux]\nchain = [{{ provider = \"{provider}\", model = \"a/b\" }}]\n")
    }

    /// DSP-14: a file is used once it is the same at two looks. One that is being written, that has
    /// no model, or that names a provider that was not there at the start, changes nothing.
    #[test]
    fn dsp_14_only_a_whole_file_that_works_changes_the_models() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tidegate.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write(&text("acme"));
        let config = Config::load(Some(&path), &Overrides::default()).unwrap();
        let storage = Arc::new(FolderStorage::open(dir.path()).unwrap());
        let dispatch = Dispatch::new(config.generations.dispatch.clone(), storage).unwrap();
        let models = ModelFile::new(config.file.unwrap(), dispatch.clone());
        let provider = || dispatch.models()[0].chain[0].provider.clone();
        let looks = || [models.reload(), models.reload(), models.reload()];
        assert!(looks().iter().all(|look| look == &Ok(false)), "nothing has changed");
        write(&text("globex"));
        assert_eq!(looks(), [Ok(false), Ok(true), Ok(false)]);
        assert_eq!(provider(), "globex");
        for (wrong, why) in [
            ("", "the file has none"),
            ("[model.flux", "not TOML"),
            (&*text("hooli"), "must have been configured at the start"),
            (&*text("nobody"), "nobody"),
        ] {
            write(wrong);
            let [first, second, third] = looks();
            assert_eq!((first, third), (Ok(false), Ok(false)), "{wrong}");
            let refused = second.unwrap_err();
            assert!(refused.message.contains(why) && provider() == "globex", "{}", refused.message);
        }
        std::fs::remove_file(&path).unwrap();
        let [first, second, third] = looks();
        assert_eq!((first, third), (Ok(false), Ok(false)));
        assert!(second.unwrap_err().message.ends_with("the file is gone."));
        write("");
        assert_eq!(models.reload(), Ok(false), "it is being written");
        write(&text("acme"));
        assert_eq!(looks(), [Ok(false), Ok(true), Ok(false)]);
        assert_eq!(provider(), "acme");
    }
}
