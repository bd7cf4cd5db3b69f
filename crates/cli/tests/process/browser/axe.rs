//! Every view at both widths and in both colour schemes, as axe sees it: an engine that finds what
//! keeps people from using a page, such as too little contrast or a field without a name.

use std::path::Path;

use serde_json::Value;

use super::session::{Browser, DESKTOP, PHONE};

/// Runs the rules that are named, or all of them, and reports what is serious: each fault with the
/// first element that has it.
const FIND_FAULTS: &str = r#"
    const [rules, done] = [JSON.parse(arguments[0]), arguments[1]];
    const options = rules ? { runOnly: { type: "rule", values: rules } } : {};
    const isSerious = (found) => ["serious", "critical"].includes(found.impact);
    const describe = ({ id, nodes }) => `${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 200)}`;
    window.axe.run(document, { ...options, resultTypes: ["violations"], preload: false })
        .then((found) => done(found.violations.filter(isSerious).map(describe)), (error) => done([String(error)]));
"#;
/// Presses *Freeze page*: axe walks for seconds through a page that otherwise changes under it.
const FREEZE: &str = "document.getElementById('hold')?.click();";
/// The rules whose result depends on colours.
const RULES_OF_COLOUR: &str = r#"["color-contrast","link-in-text-block"]"#;
const ALL_RULES: &str = "null";

/// The widths at which no view may be wider than the screen; between the others it is a tablet.
const WIDTHS: [u32; 3] = [DESKTOP, 800, PHONE];
/// Both widths in both colour schemes.
const EVERY_LOOK: [(u32, &str); 4] =
    [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")];

/// The source of axe.
pub(crate) struct Axe(String);

impl Axe {
    pub(crate) fn load() -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node/node_modules/axe-core/axe.min.js");
        let source = std::fs::read_to_string(&path);
        let source = source.unwrap_or_else(|_| panic!("there is no {}: ./test installs it", path.display()));
        Self(source + "; window.axe = axe;")
    }

    /// Opens a view and returns what is wrong with it: serious faults, and what is wider than the
    /// screen.
    pub(crate) async fn faults(&self, browser: &Browser, url: &str) -> Vec<String> {
        browser.open(url).await;
        browser.wait_until("document.getElementById('main')", &[]).await;
        browser.run(FREEZE, &[]).await;
        self.faults_here(browser, url).await
    }

    /// The same for the view that is open.
    pub(crate) async fn faults_here(&self, browser: &Browser, name: &str) -> Vec<String> {
        browser.run(&self.0, &[]).await;
        let mut faults = Vec::new();
        for width in WIDTHS {
            browser.resize(width).await;
            let overflow = browser.overflow(width).await;
            if overflow > 0 {
                faults.push(format!("{name} is {overflow} px too wide for {width} px"));
            }
        }
        for (width, scheme) in EVERY_LOOK {
            browser.resize(width).await;
            browser.prefer(scheme).await;
            let rules = if scheme == "light" { ALL_RULES } else { RULES_OF_COLOUR };
            let found = browser.run_until_called(FIND_FAULTS, &[rules]).await;
            let found = found.as_array().expect("axe returns a list").iter().filter_map(Value::as_str);
            faults.extend(found.map(|fault| format!("{name}, {width} px, {scheme}: {fault}")));
        }
        faults
    }
}
