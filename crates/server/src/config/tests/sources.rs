//! Upstreams that answer for a type of entities.

use super::parse;

/// HYD-14: a source is read with its defaults, or refused with its place.
#[test]
fn hyd_14_a_source_is_read_or_refused() {
    let upstream = "[[upstream]]\nname = \"shop\"\nbase_url = \"http://localhost\"\n";
    let source =
        "[[source]]\nentity_type = \"product\"\nupstream = \"shop\"\npath = \"/products/{id}.json\"\n";
    let config = parse(&format!("{upstream}{source}")).unwrap();
    let read = &config.sources[0];
    assert_eq!((read.entity_type.as_str(), read.data.as_str()), ("product", ""));
    assert_eq!((read.not_found.as_slice(), read.inaccessible.as_slice()), (&[404, 410][..], &[403][..]));
    assert!(read.query.is_none() && read.version.is_none() && read.fields.is_empty());
    for (more, said) in [
        ("path = \"products/{id}\"\n", "must start with"),
        ("path = \"/products\"\n", "It must contain {id} once"),
        ("path = \"/{id}/{id}\"\n", "It must contain {id} once"),
        ("upstream = \"shap\"\n", "There is no upstream"),
        ("data = \"product\"\n", "A JSON pointer is empty or starts with a slash"),
        ("version = \"updated_at\"\n", "A JSON pointer is empty or starts with a slash"),
        ("not_found = [404, 429]\n", "429 says nothing about an entity"),
        ("not_found = [200]\n", "It must be 400 to 499, not 200."),
        ("inaccessible = \"403\"\n", "It must be a list of whole numbers"),
        ("query_id = \"x\"\n", "there is no key query"),
        ("fields = { name = 1 }\n", "It must be a table of texts"),
        ("fields = [\"/id\"]\n", "such as { title = \"/title\" }, not a list."),
        ("fields = { name = \"title\" }\n", "A JSON pointer is empty or starts with a slash"),
        ("ttl = 3\n", "There is no such key"),
    ] {
        let key = more.split(' ').next().unwrap();
        let kept: String =
            source.lines().filter(|line| !line.starts_with(key)).map(|l| format!("{l}\n")).collect();
        let problems = parse(&format!("{upstream}{kept}{more}")).unwrap_err().to_string();
        assert!(problems.contains(said) && problems.contains("source[0]"), "{more}: {problems}");
    }
    let twice = parse(&format!("{upstream}{source}{source}")).unwrap_err().to_string();
    assert!(twice.contains("There is another source of"), "{twice}");
    let missing = parse(&format!("{upstream}[[source]]\n")).unwrap_err().to_string();
    for key in ["entity_type", "upstream", "path"] {
        assert!(missing.contains(&format!("The key {key} is missing.")), "{missing}");
    }
}
