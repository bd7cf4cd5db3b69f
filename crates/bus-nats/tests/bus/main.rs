//! Tests of the bus on a real NATS server.

#[cfg(test)]
mod nats;
