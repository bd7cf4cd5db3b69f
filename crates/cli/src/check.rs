//! `check-config`: says what is wrong with a file, and uses nothing of it.

use std::path::Path;

use tidegate_server::Config;
use tidegate_server::config::Overrides;

use crate::output::Output;
use crate::trouble::Trouble;

pub(crate) fn run(file: &Path, output: &Output) -> Result<(), Trouble> {
    let env = |name: &str| std::env::var(name).ok();
    let config = Config::load(file, &env, &Overrides::default(), false).map_err(|problems| {
        let count = problems.0.len();
        output.say(&problems.to_string());
        let things = if count == 1 { "1 thing is".to_owned() } else { format!("{count} things are") };
        Trouble::new(format!("{things} wrong with {}.", file.display()))
            .code(tidegate::Code::BadConfig.to_string())
    })?;
    for note in &config.notes {
        output.say(&format!("note: {note}"));
    }
    let limits: usize = config.upstreams.iter().map(|upstream| upstream.limits.len()).sum();
    output.data(&format!(
        "{}: good: {} upstreams, {limits} limits, {} tokens; listens on {}, keeps {}",
        file.display(),
        config.upstreams.len(),
        config.tokens.len(),
        config.listen,
        config.store_url,
    ));
    Ok(())
}
