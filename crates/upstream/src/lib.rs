//! The outbound port: a request in, a verdict and hints out; and the plain HTTP dialect.
