//! The HTTP server: API, page, metrics, configuration.
