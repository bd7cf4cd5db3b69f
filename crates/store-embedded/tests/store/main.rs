//! Tests of the storage ports, on memory and on a directory.

#[cfg(test)]
mod appending;
#[cfg(test)]
mod at_once;
#[cfg(test)]
mod books;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod disk_full;
#[cfg(test)]
mod image;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod unsure;
