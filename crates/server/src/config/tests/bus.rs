//! The bus.

use super::{Config, Overrides, parse};

/// HYD-12: the bus is named by a URL, in the file or in the environment; another one is refused
/// without showing it.
#[test]
fn hyd_12_a_bus_is_read_or_refused() {
    assert_eq!(parse("").unwrap().bus_url, "in-process");
    let named = parse("[bus]\nurl = \"nats://127.0.0.1:4222\"\n").unwrap();
    assert_eq!(named.bus_url, "nats://127.0.0.1:4222");
    let env = |name: &str| (name == "TIDEGATE_BUS_URL").then(|| "redis://:s3cret@host".to_owned());
    let set = Config::parse("tidegate.toml", "", &env, &Overrides::default(), &[]).unwrap();
    assert_eq!(set.bus_url, "redis://:s3cret@host");
    for text in ["[bus]\nurl = \"amqp://me:s3cret@host\"\n", "[bus]\nurl = \"s3cret\"\n", "[bus]\nuri = 1\n"]
    {
        let problems = parse(text).unwrap_err().to_string();
        assert!(problems.contains("bus.ur") && !problems.contains("s3cret"), "{problems}");
    }
}
