//! The client, bulk operations and the queue's executor, against a scripted server and against the
//! simulator.

#[cfg(test)]
mod bulk;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod executor;
#[cfg(test)]
mod graphql;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod rest;
#[cfg(test)]
mod results;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod shops;
#[cfg(test)]
mod world;
