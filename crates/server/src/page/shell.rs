//! Commands that a page names, so that they can be pasted into a shell.

/// Where the command line looks for a server by default.
const DEFAULT_HOSTS: [&str; 2] = ["127.0.0.1:7400", "localhost:7400"];

/// The flag that makes a command ask the server that was called under this name; empty if it does
/// so anyway.
pub(super) fn server_flag(host: Option<&str>, scheme: &str) -> String {
    match host {
        Some(host) if scheme != "http" || !DEFAULT_HOSTS.contains(&host) => {
            format!(" --server {}", quoted(&format!("{scheme}://{host}")))
        }
        _ => String::new(),
    }
}

/// Quotes a text for a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    if text.bytes().all(is_plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_asks_the_server_of_its_page() {
        let table = [
            ("127.0.0.1:7400", "http", ""),
            ("127.0.0.1:7400", "https", " --server https://127.0.0.1:7400"),
            ("gate.example:80", "http", " --server http://gate.example:80"),
            ("[::1]:7400", "http", " --server 'http://[::1]:7400'"),
        ];
        for (host, scheme, flag) in table {
            assert_eq!(server_flag(Some(host), scheme), flag, "{host}");
        }
        assert_eq!([quoted("order:7"), quoted("a b"), quoted("-x")], ["order:7", "'a b'", "'-x'"]);
    }
}
