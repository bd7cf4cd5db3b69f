//! Tests of the storage ports on a real PostgreSQL, including fault scenarios.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod books;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod stuck;
