//! The words of the page about idempotency keys, in English and Russian.

use crate::page::words::Language;

/// Every word, so that a language that lacks one does not compile.
pub(super) struct KeyWords {
    pub title: &'static str,
    pub no_requests: &'static str,
    pub hit_rate: &'static str,
    /// What a hit rate is, from the best to the worst.
    pub verdicts: [&'static str; 3],
    pub answered_from_store: &'static str,
    pub unknown: &'static str,
    pub unknown_about: &'static str,
    pub others: &'static str,
    pub none: &'static str,
    pub more: &'static str,
    pub scope: &'static str,
    pub expires: &'static str,
    pub decision: &'static str,
}

static ENGLISH: KeyWords = KeyWords {
    title: "Idempotency keys",
    no_requests: "No request with a key has come to this node since it started.",
    hit_rate: "Hit rate",
    verdicts: ["good", "usual", "worth a look: clients may make a new key for each try"],
    answered_from_store: "requests with a key got a stored response, at this node since it started.",
    unknown: "Outcome unknown",
    unknown_about: "Each of these requests may have been done. Check in the service, then record the outcome.",
    others: "In progress and answered",
    none: "There are none.",
    more: "There are more, and this command shows all of them:",
    scope: "Scope",
    expires: "Expires",
    decision: "It happened, or it did not",
};

static RUSSIAN: KeyWords = KeyWords {
    title: "Ключи идемпотентности",
    no_requests: "Со времени запуска на этот узел не приходило запросов с ключом.",
    hit_rate: "Доля повторов",
    verdicts: [
        "хорошо",
        "обычно",
        "стоит проверить: возможно, клиенты создают новый ключ для каждой попытки",
    ],
    answered_from_store: "запросов с ключом получили сохранённый ответ на этом узле со времени запуска.",
    unknown: "Исход неизвестен",
    unknown_about: "Каждый из этих запросов мог быть выполнен. Проверьте в сервисе и запишите исход.",
    others: "Выполняются и отвечены",
    none: "Их нет.",
    more: "Есть и другие, их покажет команда:",
    scope: "Область",
    expires: "Истекает",
    decision: "Выполнен или нет",
};

impl Language {
    pub(super) const fn key_words(self) -> &'static KeyWords {
        match self {
            Self::English => &ENGLISH,
            Self::Russian => &RUSSIAN,
        }
    }
}
