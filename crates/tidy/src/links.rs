//! Relative links in the documentation lead to an existing file of this repository and an existing
//! heading.

use std::path::{Component, Path, PathBuf};

use crate::repository::{File, Finding, assert_no_findings, files, root};

/// The targets of inline links and of `src="…"`, outside code.
fn links(page: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            // Every second piece between backticks is code.
            let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            let ends = [("](", ')'), ("src=\"", '"'), ("href=\"", '"')];
            let targets = ends.iter().flat_map(|(opens, closes)| {
                plain
                    .split(opens)
                    .skip(1)
                    .filter_map(|rest| rest.split_once(*closes))
                    .map(|(target, _)| target)
            });
            found.extend(targets.map(|target| (number, target.to_owned())));
        }
    }
    found
}

/// The anchor of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn has_heading(page: &str, anchor: &str) -> bool {
    let headings =
        page.lines().filter_map(|line| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')));
    headings.map(slug).any(|known| known == anchor)
}

/// `from` joined with `target`, without dots; `None` if it leaves the repository.
fn join_path(from: &str, target: &str) -> Option<PathBuf> {
    let mut path = Path::new(from).parent()?.to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir if !path.pop() => return None,
            Component::Normal(name) => path.push(name),
            Component::ParentDir | Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

fn problem(page: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    if path.is_empty() {
        return (!has_heading(&page.text, anchor)).then(|| format!("no heading #{anchor} on this page"));
    }
    let Some(path) = join_path(&page.path, path).map(|path| root().join(path)) else {
        return Some(format!("{target} leaves the repository"));
    };
    if !path.exists() {
        return Some(format!("{target} is not there"));
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    (!anchor.is_empty() && !has_heading(&text, anchor)).then(|| format!("{target} has no such heading"))
}

fn check(page: &File) -> Vec<Finding> {
    let broken =
        links(page).into_iter().filter_map(|(line, target)| Some(page.at(line, problem(page, &target)?)));
    broken.collect()
}

#[test]
fn relative_links_lead_somewhere() {
    assert_no_findings(files("").iter().filter(|file| file.is("md")).flat_map(check).collect());
}

#[test]
fn broken_links_are_found_and_code_is_left_alone() {
    let text = "# A b\n[x](#a-b) [y](../README.md) `[z](no)`\n```\n[z](no)\n```\n[q](no.md)\n[r](#c)\n[s](../../up)\n";
    let lines: Vec<_> = check(&File::new("docs/a.md", text)).iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [6, 7, 8]);
}
