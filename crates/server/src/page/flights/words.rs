//! The words of the page about entities, in English and Russian.

use crate::page::words::Language;

/// Every word, so that a language that lacks one does not compile.
pub(super) struct FlightWords {
    pub about: &'static str,
    pub open: &'static str,
    pub none: &'static str,
    pub more: &'static str,
    pub unreachable: &'static str,
    pub sources: &'static str,
    pub no_sources: &'static str,
    pub entity_type: &'static str,
    pub entity: &'static str,
    pub tenant: &'static str,
    pub node: &'static str,
    pub asked_for: &'static str,
    pub questions: &'static str,
    pub waiting: &'static str,
    pub deferred: &'static str,
    pub since: &'static str,
    pub until: &'static str,
    pub answer: &'static str,
    pub no_answer: &'static str,
    pub expected: &'static str,
    pub answered_by: &'static str,
}

static ENGLISH: FlightWords = FlightWords {
    about: "Entities of other modules that this server and the other nodes of its store are asking for. All callers of a node that wait for an entity share its questions: one, and another when there is no answer.",
    open: "Open",
    none: "There are none.",
    more: "There are more, and this command shows all of them:",
    unreachable: "Not shown, because the node did not answer:",
    sources: "Sources",
    no_sources: "No source is registered at this node.",
    entity_type: "Type",
    entity: "Entity",
    tenant: "Tenant",
    node: "Node",
    asked_for: "Asked for",
    questions: "Questions",
    waiting: "Waiting",
    deferred: "Deferred",
    since: "Since",
    until: "Until",
    answer: "Answer",
    no_answer: "none; newcomers fail at once",
    expected: "expected",
    answered_by: "Answered by",
};

static RUSSIAN: FlightWords = FlightWords {
    about: "Сущности других модулей, которые запрашивают этот сервер и другие узлы его хранилища. Все, кто ждёт на узле одну сущность, делят её запросы: один и ещё один, если нет ответа.",
    open: "Открытые",
    none: "Их нет.",
    more: "Есть и другие, их покажет команда:",
    unreachable: "Не показаны запросы узлов, которые не ответили:",
    sources: "Источники",
    no_sources: "На этом узле не зарегистрирован ни один источник.",
    entity_type: "Тип",
    entity: "Сущность",
    tenant: "Арендатор",
    node: "Узел",
    asked_for: "Запрошено",
    questions: "Запросов",
    waiting: "Ждут",
    deferred: "Отложено",
    since: "Открыт",
    until: "До",
    answer: "Ответ",
    no_answer: "нет; новые сразу получают ошибку",
    expected: "ожидается",
    answered_by: "Отвечает",
};

impl Language {
    pub(super) const fn flight_words(self) -> &'static FlightWords {
        match self {
            Self::English => &ENGLISH,
            Self::Russian => &RUSSIAN,
        }
    }
}
