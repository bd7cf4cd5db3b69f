//! Reads templates from files. A file that an editor or a checkout is writing at that moment is
//! read again, and named if it does not settle: half a template is a valid one too, and `--prune`
//! would remove what the other half has.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use crate::error::CliError;

/// The maximum number of times a file is read until two reads in a row are the same.
const READS_MAX: usize = 10;
/// The time between two reads, so that a writer that is at work is noticed.
const READ_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum number of templates in a folder.
const TEMPLATES_MAX: usize = 1_000;
/// How the names of templates in a folder end.
const EXTENSIONS: [&str; 2] = ["yaml", "yml"];

/// A template's text, and the file it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateText {
    pub(super) file: String,
    pub(super) text: String,
}

/// Reads the template in a file.
pub(super) async fn read_template(file: &Path) -> Result<TemplateText, CliError> {
    // A pipe can be read only once.
    let text = if file.is_file() {
        read_settled(|| std::fs::read_to_string(file)).await
    } else {
        std::fs::read_to_string(file).map(Some)
    };
    let name = file.display();
    match text {
        Ok(Some(text)) => Ok(TemplateText { file: name.to_string(), text }),
        Ok(None) => Err(unsettled(file)),
        Err(error) => Err(CliError::usage(format!("The template {name} cannot be read: {error}."))),
    }
}

/// Reads a template, or every template directly in a folder, in the order of their names and as
/// they are at one moment.
pub(super) async fn read_templates(place: &Path) -> Result<Vec<TemplateText>, CliError> {
    if !place.is_dir() {
        return Ok(vec![read_template(place).await?]);
    }
    let name = place.display();
    let failed = |error| CliError::usage(format!("The folder {name} cannot be read: {error}."));
    let count = template_files(place).map_err(failed)?.len();
    if !(1..=TEMPLATES_MAX).contains(&count) {
        let bounds = format!("a folder has 1 to {TEMPLATES_MAX} files that end in .yaml or .yml");
        return Err(CliError::usage(format!("The folder {name} has {count} templates; {bounds}.")));
    }
    read_settled(|| read_folder(place)).await.map_err(failed)?.ok_or_else(|| unsettled(place))
}

fn read_folder(folder: &Path) -> io::Result<Vec<TemplateText>> {
    let read = |file: PathBuf| {
        let name = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(text) => Ok(TemplateText { file: name, text }),
            Err(error) => Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
        }
    };
    template_files(folder)?.into_iter().map(read).collect()
}

fn template_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_template = |file: &PathBuf| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && file.is_file()
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.extend(Some(entry?.path()).filter(is_template));
    }
    files.sort();
    Ok(files)
}

fn unsettled(place: &Path) -> CliError {
    let place = place.display();
    CliError::new(format!("{place} changes while it is read, so half of it could be taken for all of it."))
        .hint("run the command again when it is written")
}

/// Reads until two reads in a row are the same. Returns `None` if it does not settle.
async fn read_settled<T: PartialEq>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    let mut last = read()?;
    for _ in 1..READS_MAX {
        sleep(READ_INTERVAL).await;
        let next = read()?;
        if next == last {
            return Ok(Some(next));
        }
        last = next;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-19: a template that is written while it is read is read as a whole, or not at all.
    #[tokio::test]
    async fn ops_19_a_template_that_is_being_written_is_not_read_by_halves() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("guild.yaml");
        let written = ["roles:\n", "roles:\n- key: a\n", "roles:\n- key: a\n- key: b\n"];
        // A writer that adds a line after each of the first reads.
        let mut rest = written.iter();
        let read = || {
            rest.next().map(|text| std::fs::write(&file, text)).transpose()?;
            std::fs::read_to_string(&file)
        };
        assert_eq!(read_settled(read).await.unwrap().as_deref(), Some(written[2]));
        // One that never ends.
        let mut count = 0;
        let read = || {
            count += 1;
            std::fs::write(&file, format!("# {count}\n"))?;
            std::fs::read_to_string(&file)
        };
        assert_eq!(read_settled(read).await.unwrap(), None);
        assert_eq!(count, READS_MAX);
        let error = unsettled(&file);
        assert!(error.exit == 1 && error.message.contains("changes while it is read"), "{error:?}");
    }

    /// OPS-19: a folder is as many templates as it has YAML files; what is in it besides is left
    /// alone.
    #[tokio::test]
    async fn ops_19_the_templates_of_a_folder_are_found() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_templates(dir.path()).await.unwrap_err().exit, 2, "an empty folder is a slip");
        for name in ["b.yml", "a.yaml", "schema.json", "README"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::fs::create_dir(dir.path().join("c.yaml")).unwrap();
        let found = read_templates(dir.path()).await.unwrap();
        assert_eq!(found.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["a.yaml", "b.yml"]);
    }
}
