//! The limits of Shopify's API that Tidegate relies on.

/// The most that one query may cost on any plan, in points.
pub const SINGLE_MAX: u64 = 1_000;
/// The most objects per page.
pub const PAGE_MAX: u64 = 250;
/// Most bulk operations at once that Shopify allows, from API version 2026-01 on.
pub const BULK_AT_ONCE_MAX: u32 = 5;
