//! Simulators: upstreams on loopback that enforce their limits, and a seeded world.
