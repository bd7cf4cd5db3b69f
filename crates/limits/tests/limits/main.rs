//! Buckets and leases as a program uses them: in simulated time, and on real servers.

#[cfg(test)]
mod guards;
#[cfg(test)]
mod learning;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod places;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod several;
#[cfg(test)]
mod stalled;
#[cfg(test)]
mod taking;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod world;
