//! The repository as a list of text files, and the findings in them. Build output and files that
//! only git or the benchmarks' peers need are skipped.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

const SKIPPED: [&str; 5] = [".git", "target", "node_modules", "tidegate-data", "peers"];

/// A text file: its path from the root, with `/`, and its text.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub path: String,
    pub text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// A finding in this file; lines count from 1.
    pub(crate) fn at(&self, line: usize, rule: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, rule: rule.into() }
    }

    /// Lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub path: String,
    pub line: usize,
    pub rule: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.rule)
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate is two folders below the root").to_path_buf()
}

/// Every text file below a folder of the repository, by path.
pub(crate) fn files(below: &str) -> Vec<File> {
    let mut found = Vec::new();
    walk(&root().join(below), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "no files below {below:?}: the check would prove nothing");
    found
}

/// One file, which must exist.
pub(crate) fn file(path: &str) -> File {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    File { path: path.to_owned(), text }
}

/// Every source file of every crate and example.
pub(crate) fn sources() -> Vec<File> {
    ["crates", "examples"].into_iter().flat_map(files).filter(|file| file.is("rs")).collect()
}

/// Fails with all findings, one line each.
pub(crate) fn assert_no_findings(mut findings: Vec<Finding>) {
    findings.sort();
    let told: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{} against the rules:\n{}", told.len(), told.join("\n"));
}

fn walk(folder: &Path, found: &mut Vec<File>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of a folder can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_symlink() || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            walk(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let relative = path.strip_prefix(root()).expect("it is below the root");
            found.push(File { path: relative.to_string_lossy().replace('\\', "/"), text });
        }
    }
}
