//! Tests of the storage ports on a real Redis and on a real Redis Cluster.

#[cfg(test)]
mod appending;
#[cfg(test)]
mod bucket;
#[cfg(test)]
mod bus;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod cut;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod records;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod server_clock;
#[cfg(test)]
mod trail;
#[cfg(test)]
mod zombie;
