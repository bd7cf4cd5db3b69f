//! Nodes on one store: shares that come out even, hand-over, take-over, and a store out of reach.

#[cfg(test)]
mod apart;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod world;
