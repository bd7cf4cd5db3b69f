//! What a stranger sees of a library: a crate that may be published has a README, says what it is,
//! and shows an example that runs. A crate that is not a library says `publish = false`.

use std::collections::BTreeMap;

use crate::manifest::{Manifest, manifests};
use crate::repository::{File, Finding, assert_no_findings, file};

/// The categories that a registry knows, of those used here.
const CATEGORIES: [&str; 14] = [
    "algorithms",
    "api-bindings",
    "asynchronous",
    "compression",
    "concurrency",
    "data-structures",
    "database",
    "database-implementations",
    "encoding",
    "network-programming",
    "web-programming",
    "web-programming::http-client",
    "web-programming::http-server",
    "web-programming::websocket",
];

fn table(file: &File) -> toml::Table {
    file.text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

fn is_published(manifest: &Manifest) -> bool {
    table(&manifest.file)["package"].get("publish").is_none()
}

/// The first example of a crate's documentation, as a reader sees it: without hidden lines.
fn first_example(lib: &File) -> Vec<String> {
    let docs = lib.lines().map_while(|(_, line)| line.strip_prefix("//!"));
    let docs = docs.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let code = docs.skip_while(|line| !line.starts_with("```")).skip(1);
    let code = code.take_while(|line| !line.starts_with("```"));
    code.filter(|line| *line != "#" && !line.starts_with("# ")).map(str::to_owned).collect()
}

fn readme_example(readme: &File) -> Vec<String> {
    let code = readme.text.lines().skip_while(|line| *line != "```rust").skip(1);
    code.take_while(|line| *line != "```").map(str::to_owned).collect()
}

/// The lowest supported version of Rust.
fn lowest_rust() -> String {
    let root = table(&file("Cargo.toml"));
    root["workspace"]["package"]["rust-version"].as_str().expect("the workspace names it").to_owned()
}

fn described(manifest: &Manifest) -> Vec<Finding> {
    let package = table(&manifest.file)["package"].clone();
    let words = |key: &str| -> Vec<String> {
        let list = package.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let (keywords, categories) = (words("keywords"), words("categories"));
    let sentence = package.get("description").and_then(toml::Value::as_str).unwrap_or_default();
    let problems = [
        (!sentence.ends_with('.'), "has no description that is a sentence"),
        (package.get("readme").and_then(toml::Value::as_str) != Some("README.md"), "names no README.md"),
        (
            package.get("documentation").and_then(toml::Value::as_str)
                != Some(&format!("https://docs.rs/{}", manifest.package)),
            "does not say where its documentation is",
        ),
        (!(1..=5).contains(&keywords.len()), "needs one to five keywords"),
        (keywords.iter().any(|word| word.len() > 20), "has a keyword of more than 20 characters"),
        (
            categories.is_empty() || categories.iter().any(|word| !CATEGORIES.contains(&word.as_str())),
            "has no category, or one that is not in crates/tidy/src/library_face.rs",
        ),
    ];
    let wrong = problems.into_iter().filter(|(is_wrong, _)| *is_wrong);
    wrong.map(|(_, rule)| manifest.file.at(1, format!("{} {rule}", manifest.package))).collect()
}

fn shown(package: &str, readme: &File, lib: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if readme.text.lines().next() != Some(&format!("# {package}")) {
        findings.push(readme.at(1, format!("it starts with `# {package}`")));
    }
    if !readme.text.contains(&format!("Rust version is {};", lowest_rust())) {
        findings.push(readme.at(1, format!("it names the lowest Rust version, {}", lowest_rust())));
    }
    let example = first_example(lib);
    if example.is_empty() {
        findings.push(lib.at(1, "the documentation of a library starts with an example"));
    } else if readme_example(readme) != example {
        findings.push(readme.at(1, format!("its first example is not that of {}", lib.path)));
    }
    findings
}

/// A library that needs a crate which is not published could not be published either.
fn unpublished(crates: &BTreeMap<String, Manifest>) -> Vec<Finding> {
    let kept: Vec<&str> =
        crates.values().filter(|one| !is_published(one)).map(|one| one.package.as_str()).collect();
    let mut findings = Vec::new();
    for manifest in crates.values().filter(|one| is_published(one)) {
        for package in manifest.dependencies.iter().filter(|package| kept.contains(&package.as_str())) {
            let rule = format!("{} is published, and {package} is not", manifest.package);
            findings.push(manifest.file.at(manifest.line_of(package), rule));
        }
    }
    findings
}

#[test]
fn libraries_are_ready_for_strangers() {
    let crates = manifests();
    let mut findings = unpublished(&crates);
    let libraries: Vec<_> = crates.values().filter(|manifest| is_published(manifest)).collect();
    assert!(libraries.len() >= 5, "the check would prove nothing");
    for manifest in libraries {
        findings.extend(described(manifest));
        let folder = &manifest.folder;
        let [readme, lib] = ["README.md", "src/lib.rs"].map(|name| file(&format!("crates/{folder}/{name}")));
        findings.extend(shown(&manifest.package, &readme, &lib));
    }
    assert_no_findings(findings);
}

#[test]
fn a_bare_library_and_another_example_are_found() {
    let of = |folder: &str, text: &str| {
        let text = format!("[package]\nname = \"tidegate-{folder}\"\n{text}\n");
        (folder.to_owned(), Manifest::parse(File::new(&format!("crates/{folder}/Cargo.toml"), &text)))
    };
    let crates = BTreeMap::from([
        of("core", "[dependencies]\ntidegate-fixture.workspace = true"),
        of("fixture", "publish.workspace = true"),
    ]);
    assert_eq!(unpublished(&crates).iter().map(|found| found.line).collect::<Vec<_>>(), [4]);
    assert_eq!(described(&crates["core"]).len(), 5);
    let lib = File::new("crates/a/src/lib.rs", "//! A.\n//!\n//! ```\n//! # hidden();\n//! a();\n//! ```\n");
    let readme = |example: &str| {
        File::new(
            "crates/a/README.md",
            &format!("# a\n\nRust version is {};\n```rust\n{example}\n```\n", lowest_rust()),
        )
    };
    assert_eq!(shown("a", &readme("a();"), &lib), []);
    assert_eq!((shown("a", &readme("b();"), &lib).len(), shown("b", &readme("a();"), &lib).len()), (1, 1));
}
