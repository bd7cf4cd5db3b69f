//! Reads templates from files. A file that an editor or a checkout is writing at that moment is
//! read again, and named if it does not settle: half a template is a valid one too, and `--prune`
//! would remove what the other half has.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

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
pub(super) fn read_template(file: &Path) -> Result<TemplateText, CliError> {
    // A pipe can be read only once.
    let text = if file.is_file() {
        read_settled(|| std::fs::read_to_string(file))
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

/// Reads a template, or every template directly in a folder, in the order of their names.
pub(super) fn read_templates(place: &Path) -> Result<Vec<TemplateText>, CliError> {
    if !place.is_dir() {
        return Ok(vec![read_template(place)?]);
    }
    let name = place.display();
    let failed = |error| CliError::usage(format!("The folder {name} cannot be read: {error}."));
    let files = read_settled(|| template_files(place)).map_err(failed)?.ok_or_else(|| unsettled(place))?;
    match files.len() {
        0 => Err(CliError::usage(format!("The folder {name} has no file that ends in .yaml or .yml."))),
        1..=TEMPLATES_MAX => files.iter().map(|file| read_template(file)).collect(),
        many => Err(CliError::usage(format!(
            "The folder {name} has {many} templates; the most is {TEMPLATES_MAX}."
        ))),
    }
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
fn read_settled<T: PartialEq>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    let mut last = read()?;
    for _ in 1..READS_MAX {
        sleep(READ_INTERVAL);
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
    #[test]
    fn ops_19_a_template_that_is_being_written_is_not_read_by_halves() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("guild.yaml");
        let written = ["roles:\n", "roles:\n- key: a\n", "roles:\n- key: a\n- key: b\n"];
        // A writer that adds a line after each of the first reads.
        let mut rest = written.iter();
        let read = || {
            rest.next().map(|text| std::fs::write(&file, text)).transpose()?;
            std::fs::read_to_string(&file)
        };
        assert_eq!(read_settled(read).unwrap().as_deref(), Some(written[2]));
        // One that never ends.
        let mut count = 0;
        let read = || {
            count += 1;
            std::fs::write(&file, format!("# {count}\n"))?;
            std::fs::read_to_string(&file)
        };
        assert_eq!(read_settled(read).unwrap(), None);
        assert_eq!(count, READS_MAX);
        let error = unsettled(&file);
        assert!(error.exit == 1 && error.message.contains("changes while it is read"), "{error:?}");
    }

    /// OPS-19: a folder is as many templates as it has YAML files; what is in it besides is left
    /// alone.
    #[test]
    fn ops_19_the_templates_of_a_folder_are_found() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_templates(dir.path()).unwrap_err().exit, 2, "an empty folder is a slip");
        for name in ["b.yml", "a.yaml", "schema.json", "README"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::fs::create_dir(dir.path().join("c.yaml")).unwrap();
        let found = read_templates(dir.path()).unwrap();
        assert_eq!(found.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["a.yaml", "b.yml"]);
    }
}
