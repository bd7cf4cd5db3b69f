//! The rules of the repository as tests. It has no API: `cargo test -p tidegate-tidy` reads the
//! repository and fails with the file, the line and the rule. What the compiler and clippy check is
//! left to them.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod dashboards;
#[cfg(test)]
mod drivers;
#[cfg(test)]
mod error_pages;
#[cfg(test)]
mod floors;
#[cfg(test)]
mod library_face;
#[cfg(test)]
mod linked;
#[cfg(test)]
mod links;
#[cfg(test)]
mod manifest;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod names;
#[cfg(test)]
mod phrases;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod pure_core;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod requirements;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod type_names;
#[cfg(test)]
mod widths;
#[cfg(test)]
mod words;
