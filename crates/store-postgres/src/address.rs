//! The URL of a store or an archive, split into our part (the schema) and the driver's. It is
//! parsed here and never printed: it may contain a password.

use std::str::FromStr;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tidegate_store::{Error, Result, StoreErrorKind};

/// The longest name that PostgreSQL does not truncate.
const SCHEMA_LEN_MAX: usize = 63;

/// The address of a store.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) options: PgConnectOptions,
    pub(crate) schema: String,
}

impl Address {
    /// Parses a URL; `usual` is the default schema.
    pub(crate) fn parse(url: &str, usual: &str) -> Result<Self> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(invalid("a PostgreSQL URL has the form postgres://user@host:port/database"));
        }
        let (place, params) = url.split_once('?').unwrap_or((url, ""));
        // What follows the first `/` after the scheme is a database; if it contains an `@`, it is
        // the rest of a password.
        let behind = place.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        if behind.is_some_and(|(_, database)| database.contains('@')) {
            return Err(invalid(
                "a PostgreSQL URL cannot be read: in a password, write `@` as %40, `/` as %2F and `:` as %3A",
            ));
        }
        let mut schema = usual;
        let mut others = Vec::new();
        for param in params.split('&').filter(|param| !param.is_empty()) {
            match param.split_once('=') {
                Some(("schema", name)) => schema = name,
                _ => others.push(param),
            }
        }
        if !is_plain(schema) {
            let message = format!(
                "the schema in a PostgreSQL URL must consist of lower-case letters, digits and _, at most {SCHEMA_LEN_MAX}"
            );
            return Err(invalid(message));
        }
        let rest = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
        // The driver's error may repeat a part of the URL, so it is not passed on.
        let options = PgConnectOptions::from_str(&rest)
            .map_err(|_| invalid("a PostgreSQL URL cannot be read: check its host, port and parameters"))?;
        Ok(Self { options: options.disable_statement_logging(), schema: schema.to_owned() })
    }

    /// Describes the address without secrets.
    pub(crate) fn describe(&self) -> String {
        let options = &self.options;
        let place = options.get_socket().map_or_else(
            || format!("{}:{}", options.get_host(), options.get_port()),
            |socket| socket.display().to_string(),
        );
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        format!("postgres://{place}/{database}?schema={}", self.schema)
    }
}

pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    starts_well && name.len() <= SCHEMA_LEN_MAX && name.bytes().all(plain) && !name.starts_with("pg_")
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(StoreErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A password is not taken for an address, which would be shown.
    #[test]
    fn a_password_that_is_not_escaped_is_refused_and_not_shown() {
        for url in
            ["postgres://u:p@ss/word@db:1/main", "postgres://u:pa/ss@db:1/main", "postgres://u:/@db/main"]
        {
            let error = Address::parse(url, "x").err().expect("refused").to_string();
            assert!(error.ends_with("in a password, write `@` as %40, `/` as %2F and `:` as %3A"), "{error}");
        }
    }

    #[test]
    fn the_schema_is_ours_and_the_rest_is_the_drivers() {
        let address =
            Address::parse("postgres://ann:pa%3Fss@db:6543/main?schema=gate_2&sslmode=disable", "x").unwrap();
        assert_eq!(address.schema, "gate_2");
        assert_eq!(address.describe(), "postgres://db:6543/main?schema=gate_2");
        assert_eq!(Address::parse("postgresql://ann@db/main", "tidegate").unwrap().schema, "tidegate");
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_being_repeated() {
        let secret = "hunter2";
        for url in [
            "redis://ann:hunter2@db/main",
            "postgres://ann:hunter2@db:port/main",
            "postgres://ann:hunter2@db/main?sslmode=hunter2",
            "postgres://ann@db/main?schema=Hunter2;drop",
            "postgres://ann:hunter2@db/main?schema=",
            "postgres://ann:hunter2@db/main?schema=pg_catalog",
        ] {
            let Err(error) = Address::parse(url, "x") else { panic!("{url} was taken") };
            assert_eq!(error.kind(), StoreErrorKind::Invalid);
            assert!(!error.to_string().to_lowercase().contains(secret), "{error}");
        }
    }
}
