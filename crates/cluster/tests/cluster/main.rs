//! Nodes on one store: even shares, handoff, failover, and an unavailable store.

#[cfg(test)]
mod apart;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod world;
