//! A consumer and its sources on a bus, with a clock that the tests move.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod closing;
#[cfg(test)]
mod events;
#[cfg(test)]
mod failure_modes;
#[cfg(test)]
mod gaps;
#[cfg(test)]
mod late_answers;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod waiters;
#[cfg(test)]
mod world;
