//! The clients in `clients/`: type-checked, and put through test suites of their own against this
//! very server. Their examples run against the demo, and the helper for BullMQ with BullMQ itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ALONE;
use crate::languages::python_tool;

/// Folders that a build of the TypeScript client makes.
const BUILT: [&str; 4] = ["node_modules", "dist", "build", "test/examples"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Copies a folder, without what was built in it.
fn copy_dir(from: &Path, into: &Path) {
    std::fs::create_dir_all(into).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), into.join(entry.file_name()));
        if !path.is_dir() {
            std::fs::copy(&path, &target).unwrap();
        } else if !BUILT.iter().any(|built| path.ends_with(built)) {
            copy_dir(&path, &target);
        }
    }
}

/// Runs a suite to its end, with the server that it tests.
fn pass(command: &mut Command) {
    let output = command.env("TIDEGATE_BIN", env!("CARGO_BIN_EXE_tidegate")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
}

/// The TypeScript client passes `tsc --strict` and its own tests, with the examples of its README
/// and of the guides. It is built beside the packages that it is built with.
#[test]
fn the_typescript_client_passes_its_own_tests() {
    let _alone = ALONE.blocking_lock();
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let client = tmp.join("clients/typescript");
    let packages = client.join("node_modules");
    assert!(packages.is_dir(), "there are no packages in {}: ./test installs them", packages.display());
    for built in ["src", "test", "dist", "build"] {
        let _ = std::fs::remove_dir_all(client.join(built));
    }
    copy_dir(&repository().join("clients/typescript"), &client);
    copy_dir(&repository().join("docs/guides"), &tmp.join("docs/guides"));
    pass(Command::new("npm").arg("test").current_dir(&client));
}

/// The Python client passes `mypy --strict` and its own tests, with the examples of its README.
#[test]
fn the_python_client_passes_its_own_tests() {
    let _alone = ALONE.blocking_lock();
    let mut python = python_tool("python");
    python
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .current_dir(repository().join("clients/python"));
    // Other packages here have plugins of their own.
    python.env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    pass(&mut python);
}
