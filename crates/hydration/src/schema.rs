//! The schemas of the events, as files that other languages can use.

/// The JSON Schema of `entity/unknown`.
pub const ENTITY_UNKNOWN_SCHEMA: &str = include_str!("../schemas/entity-unknown.schema.json");
/// The JSON Schema of `entity/updated`.
pub const ENTITY_UPDATED_SCHEMA: &str = include_str!("../schemas/entity-updated.schema.json");
/// The JSON Schema of `entity/not-found`.
pub const ENTITY_NOT_FOUND_SCHEMA: &str = include_str!("../schemas/entity-not-found.schema.json");
/// The AsyncAPI document of the three events.
pub const ASYNC_API: &str = include_str!("../schemas/asyncapi.json");
