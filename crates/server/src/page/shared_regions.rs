//! The live regions of the overview, which all open pages of a node share: they are read and
//! rendered once, however many browsers ask for them.

use std::time::Duration;

use maud::Markup;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::words::Language;

/// How long rendered regions are used: shorter than the time from one refresh of a page to the
/// next, so that a page sees what its own operator did.
const VALID: Duration = Duration::from_millis(900);

/// What regions differ by: the language, and the state that operations are filtered by.
pub(super) type RegionsKey = (Language, Option<String>);

/// Rendered regions, for as long as they are valid. There are as many as languages and states.
#[derive(Default)]
pub(crate) struct SharedRegions(Mutex<Vec<(RegionsKey, Instant, Markup)>>);

impl SharedRegions {
    /// Returns the regions, rendered unless they were lately. Others wait meanwhile.
    pub(super) async fn get(&self, key: RegionsKey, render: impl Future<Output = Markup>) -> Markup {
        let mut rendered = self.0.lock().await;
        rendered.retain(|(_, at, _)| at.elapsed() < VALID);
        if let Some((_, _, regions)) = rendered.iter().find(|(known, ..)| *known == key) {
            return regions.clone();
        }
        let regions = render.await;
        rendered.push((key, Instant::now(), regions.clone()));
        regions
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use maud::html;

    use super::*;

    /// OPS-24: ten pages cost as much as one, and none shows what is old.
    #[tokio::test(start_paused = true)]
    async fn ops_24_open_pages_share_what_is_rendered() {
        let (shared, rendered) = (SharedRegions::default(), Cell::new(0));
        let get = async |language, state: Option<&str>| {
            let render = async {
                rendered.set(rendered.get() + 1);
                html! { (rendered.get()) }
            };
            shared.get((language, state.map(str::to_owned)), render).await.into_string()
        };
        for _ in 0..10 {
            assert_eq!(get(Language::English, None).await, "1");
        }
        assert_eq!(get(Language::Russian, None).await, "2");
        assert_eq!(get(Language::English, Some("failed")).await, "3");
        tokio::time::advance(VALID).await;
        assert_eq!(get(Language::English, None).await, "4");
    }
}
