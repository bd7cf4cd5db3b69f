//! The layer in front of a scripted handler, on a store in memory whose clock moves with tokio's.

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod counts;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod log_lines;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod recorder;
#[cfg(test)]
mod replays;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod stops;
#[cfg(test)]
mod times;
#[cfg(test)]
mod waits;
#[cfg(test)]
mod world;
