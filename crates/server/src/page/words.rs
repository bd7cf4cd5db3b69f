//! The words of the pages about generations, in English and Russian. A language is chosen by
//! `Accept-Language`. Ids, names and texts of providers stay as they are.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;
use tidegate_dispatch::{AttemptOutcome, GenerationStatus, ProviderState};

use super::parts::span_in;
use crate::generations::providers::Availability;

/// The most languages of a header that are looked at.
const LANGUAGES_MAX: usize = 32;

/// A language of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Russian,
}

impl Language {
    /// The language that a browser prefers among those that there are; English for any other.
    pub(crate) fn preferred(headers: &HeaderMap) -> Self {
        let header = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut best = (0.0, Self::English);
        for entry in header.split(',').take(LANGUAGES_MAX) {
            let (tag, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            let language = match tag.trim().split('-').next().map(str::to_ascii_lowercase).as_deref() {
                Some("ru") => Self::Russian,
                Some("en" | "*") => Self::English,
                _ => continue,
            };
            let quality = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.trim().parse().ok());
            let quality: f64 = quality.unwrap_or(0.0);
            if quality > best.0 {
                best = (quality, language);
            }
        }
        best.1
    }

    /// The value of `lang`.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Russian => "ru",
        }
    }

    pub(crate) const fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Russian => &RUSSIAN,
        }
    }
}

/// Every word, so that a language that lacks one does not compile.
#[derive(Debug)]
pub(crate) struct Words {
    // The frame of a page.
    pub skip: &'static str,
    pub keys: &'static str,
    pub flights: &'static str,
    pub api: &'static str,
    pub as_of_now: &'static str,
    pub live: &'static str,
    pub lost: &'static str,
    pub gone: &'static str,
    pub store_ready: &'static str,
    pub store_away: &'static str,
    pub held: &'static str,
    pub pause: &'static str,
    pub resume: &'static str,
    // Units of time: second, minute, hour, day.
    pub units: [&'static str; 4],
    // What pages share.
    pub generations: &'static str,
    pub generation: &'static str,
    pub ledger: &'static str,
    pub providers: &'static str,
    pub provider: &'static str,
    pub model: &'static str,
    pub models: &'static str,
    pub chain: &'static str,
    pub user: &'static str,
    pub status: &'static str,
    pub ago: &'static str,
    pub until: &'static str,
    pub reason: &'static str,
    pub more: &'static str,
    pub as_json: &'static str,
    pub show_all: &'static str,
    pub all: &'static str,
    // The states of a generation.
    pub in_queue: &'static str,
    pub generating: &'static str,
    pub completed: &'static str,
    pub failed: &'static str,
    pub canceled: &'static str,
    // One generation.
    pub no_generations: &'static str,
    pub picture: &'static str,
    pub file: &'static str,
    pub input: &'static str,
    pub created: &'static str,
    pub ended: &'static str,
    pub position: &'static str,
    pub progress: &'static str,
    pub cancel_requested: &'static str,
    pub job_failed: &'static str,
    pub why_waiting: &'static str,
    pub attempts: &'static str,
    pub attempt: &'static str,
    /// A template: a run and an attempt in it.
    pub run_and_attempt: &'static str,
    pub key: &'static str,
    // The ledger.
    pub outcome: &'static str,
    pub cost: &'static str,
    /// What costs are counted in.
    pub costs_about: &'static str,
    pub submitted: &'static str,
    pub job: &'static str,
    pub billed_twice: &'static str,
    pub only_doubtful: &'static str,
    pub no_attempts: &'static str,
    pub no_attempts_yet: &'static str,
    /// The outcomes of attempts that no state of a generation has a word for.
    pub awaiting: &'static str,
    pub succeeded: &'static str,
    pub next_provider: &'static str,
    pub throttled: &'static str,
    pub unknown: &'static str,
    // Providers.
    pub no_models: &'static str,
    pub no_providers: &'static str,
    pub slots: &'static str,
    pub per_minute: &'static str,
    pub waiting: &'static str,
    pub errors_in_a_row: &'static str,
    pub last_error: &'static str,
    pub free: &'static str,
    pub busy: &'static str,
    pub rate_limited: &'static str,
    pub cooling_down: &'static str,
    pub probing: &'static str,
    pub in_use: &'static str,
    /// Templates: how many are in progress of how many that may be, and how many are left of that.
    pub taken_of: &'static str,
    pub left_of: &'static str,
}

impl Words {
    /// The word for the status of a generation.
    pub(crate) const fn status(&self, status: GenerationStatus) -> &'static str {
        match status {
            GenerationStatus::Pending | GenerationStatus::Queued => self.in_queue,
            GenerationStatus::Processing => self.generating,
            GenerationStatus::Completed => self.completed,
            GenerationStatus::Failed => self.failed,
            GenerationStatus::Canceled => self.canceled,
        }
    }

    /// The word for what a provider of a chain does about a generation.
    pub(crate) const fn provider_state(&self, state: ProviderState) -> &'static str {
        match state {
            ProviderState::Free => self.free,
            ProviderState::Busy => self.busy,
            ProviderState::RateLimited => self.rate_limited,
            ProviderState::CoolingDown => self.cooling_down,
            ProviderState::Failed => self.failed,
            ProviderState::InUse => self.in_use,
        }
    }

    /// The words for how an attempt at a provider ended.
    pub(crate) const fn attempt_outcome(&self, outcome: AttemptOutcome) -> &'static str {
        match outcome {
            AttemptOutcome::Awaiting => self.awaiting,
            AttemptOutcome::Succeeded => self.succeeded,
            AttemptOutcome::Failed => self.failed,
            AttemptOutcome::NextProvider => self.next_provider,
            AttemptOutcome::Throttled => self.throttled,
            AttemptOutcome::Canceled => self.canceled,
            AttemptOutcome::Unknown => self.unknown,
        }
    }

    /// The word for whether a provider takes jobs.
    pub(crate) const fn availability(&self, state: Availability) -> &'static str {
        match state {
            Availability::Free => self.free,
            Availability::Busy => self.busy,
            Availability::RateLimited => self.rate_limited,
            Availability::CoolingDown => self.cooling_down,
            Availability::Probing => self.probing,
        }
    }

    /// A duration in one or two units.
    pub(crate) fn span(&self, duration: Duration) -> String {
        span_in(duration, self.units)
    }
}

static ENGLISH: Words = Words {
    skip: "Skip to content",
    keys: "Keys",
    flights: "Flights",
    api: "API",
    as_of_now: "as of this moment",
    live: "● live",
    lost: "connection lost; as of ",
    gone: "no longer known here",
    store_ready: "store ready",
    store_away: "✕ store unavailable since ",
    held: "frozen as of ",
    pause: "Freeze page",
    resume: "Unfreeze",
    units: ["s", "min", "h", "d"],
    generations: "Generations",
    generation: "Generation",
    ledger: "Ledger",
    providers: "Providers",
    provider: "Provider",
    model: "Model",
    models: "Models",
    chain: "Chain",
    user: "User",
    status: "Status",
    ago: "ago",
    until: "Until",
    reason: "Reason",
    more: "Older",
    as_json: "as JSON",
    show_all: "Show all",
    all: "All",
    in_queue: "in queue…",
    generating: "generating…",
    completed: "done",
    failed: "failed",
    canceled: "canceled",
    no_generations: "There are no generations. Create one with",
    picture: "Result of",
    file: "File",
    input: "Input",
    created: "Created",
    ended: "Ended",
    position: "Position in the queue",
    progress: "Progress",
    cancel_requested: "A cancel was requested.",
    job_failed: "The provider had accepted the job. No other one was tried, because both might have been billed.",
    why_waiting: "What it waits for",
    attempts: "Attempts",
    attempt: "Attempt",
    run_and_attempt: "run {}, attempt {}",
    key: "Key",
    outcome: "Outcome",
    cost: "Cost",
    costs_about: "Costs are in the unit of the configuration.",
    submitted: "Submitted",
    job: "Job",
    billed_twice: "may be billed twice",
    only_doubtful: "Only what may be billed twice",
    no_attempts: "There are none.",
    no_attempts_yet: "None so far. There are older attempts that were not searched.",
    awaiting: "awaiting",
    succeeded: "succeeded",
    next_provider: "passed to the next provider",
    throttled: "throttled",
    unknown: "unknown",
    no_models: "No model is configured. Add [provider.NAME] and [model.NAME] to the configuration.",
    no_providers: "No provider is configured.",
    slots: "Jobs",
    per_minute: "Submits left this minute",
    waiting: "Waiting",
    errors_in_a_row: "Errors in a row",
    last_error: "Last error",
    free: "free",
    busy: "busy",
    rate_limited: "rate limited",
    cooling_down: "cooling down",
    probing: "tried with one job",
    in_use: "in use",
    taken_of: "{} of {} taken",
    left_of: "{} of {} left",
};

static RUSSIAN: Words = Words {
    skip: "К содержанию",
    keys: "Ключи",
    flights: "Запросы сущностей",
    api: "API",
    as_of_now: "по состоянию на сейчас",
    live: "● обновляется",
    lost: "связь потеряна; данные на ",
    gone: "здесь этого больше нет",
    store_ready: "хранилище доступно",
    store_away: "✕ хранилище недоступно с ",
    held: "не обновляется с ",
    pause: "Не обновлять",
    resume: "Обновлять",
    units: ["с", "мин", "ч", "д"],
    generations: "Генерации",
    generation: "Генерация",
    ledger: "Журнал попыток",
    providers: "Провайдеры",
    provider: "Провайдер",
    model: "Модель",
    models: "Модели",
    chain: "Цепочка",
    user: "Пользователь",
    status: "Статус",
    ago: "назад",
    until: "До",
    reason: "Причина",
    more: "Более ранние",
    as_json: "в виде JSON",
    show_all: "Показать все",
    all: "Все",
    in_queue: "в очереди…",
    generating: "генерируется…",
    completed: "готово",
    failed: "ошибка",
    canceled: "отменена",
    no_generations: "Генераций пока нет. Создать:",
    picture: "Результат модели",
    file: "Файл",
    input: "Входные данные",
    created: "Создана",
    ended: "Завершена",
    position: "Место в очереди",
    progress: "Готовность",
    cancel_requested: "Запрошена отмена.",
    job_failed: "Провайдер принял задание, поэтому другим оно не отправлялось: за него могли бы взять плату дважды.",
    why_waiting: "Чего она ждёт",
    attempts: "Попытки",
    attempt: "Попытка",
    run_and_attempt: "запуск {}, попытка {}",
    key: "Ключ",
    outcome: "Итог",
    cost: "Стоимость",
    costs_about: "Стоимость — какой её называет настройка, в её единицах.",
    submitted: "Отправлена",
    job: "Задание",
    billed_twice: "возможна двойная оплата",
    only_doubtful: "Только с возможной двойной оплатой",
    no_attempts: "Их нет.",
    no_attempts_yet: "Пока ни одной. Более ранние попытки не просмотрены.",
    awaiting: "ожидается ответ",
    succeeded: "выполнена",
    next_provider: "перешла к следующему провайдеру",
    throttled: "отказ по лимиту",
    unknown: "неизвестно",
    no_models: "Ни одна модель не настроена. Добавьте [provider.NAME] и [model.NAME] в конфигурацию.",
    no_providers: "Провайдеры не настроены.",
    slots: "Задания",
    per_minute: "Осталось отправок в этой минуте",
    waiting: "Ждут",
    errors_in_a_row: "Ошибок подряд",
    last_error: "Последняя ошибка",
    free: "свободен",
    busy: "занят",
    rate_limited: "исчерпан лимит в минуту",
    cooling_down: "остывает после ошибок",
    probing: "проба одним заданием",
    in_use: "работает",
    taken_of: "занято {} из {}",
    left_of: "осталось {} из {}",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-16: Russian where the browser prefers it, English otherwise.
    #[test]
    fn dsp_16_the_language_is_the_one_that_the_browser_prefers() {
        let table = [
            ("", Language::English),
            ("ru", Language::Russian),
            ("ru-RU,ru;q=0.9,en;q=0.8", Language::Russian),
            ("en-GB,en;q=0.9,ru;q=0.8", Language::English),
            ("de;q=1.0, RU;q=0.5, en;q=0.4", Language::Russian),
            ("fr, de;q=0.5", Language::English),
            ("*, ru;q=0.5", Language::English),
            ("ru;q=0, en;q=0.1", Language::English),
            ("ru;q=x", Language::English),
        ];
        for (header, language) in table {
            let headers = HeaderMap::from_iter([(ACCEPT_LANGUAGE, header.parse().unwrap())]);
            assert_eq!(Language::preferred(&headers), language, "{header}");
        }
        assert_eq!(Language::preferred(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn times_are_in_the_language() {
        let time = Duration::from_secs(7_445);
        assert_eq!(Language::English.words().span(time), "2 h 04 min");
        assert_eq!(Language::Russian.words().span(time), "2 ч 04 мин");
    }
}
