//! The words about deployments, in English and Russian.

use crate::page::words::Language;

/// Every word, so that a language that lacks one does not compile.
pub(super) struct DeploymentWords {
    pub newest_first: &'static str,
    pub deployments: &'static str,
    pub none: &'static str,
    pub stage: &'static str,
    pub guild: &'static str,
    pub progress: &'static str,
    /// The number of applied steps, of all.
    pub applied_of: &'static str,
    pub failed: &'static str,
    pub begun: &'static str,
    pub ended: &'static str,
    pub note: &'static str,
    pub plans: &'static str,
    pub warning: &'static str,
    pub steps: &'static str,
    pub events: &'static str,
    pub state_of_steps: &'static str,
    pub last_events: &'static str,
    pub step: &'static str,
    pub action: &'static str,
    pub event: &'static str,
}

static ENGLISH: DeploymentWords = DeploymentWords {
    newest_first: "Deployments, newest first",
    deployments: "Deployments",
    none: "There are none.",
    stage: "Stage",
    guild: "Guild",
    progress: "Progress",
    applied_of: "{} of {} steps applied",
    failed: "Failed",
    begun: "Begun",
    ended: "Ended",
    note: "Note",
    plans: "Plans",
    warning: "Warning",
    steps: "Steps",
    events: "Events",
    state_of_steps: "The state of each step",
    last_events: "What happened last, newest first",
    step: "Step",
    action: "Action",
    event: "Event",
};

static RUSSIAN: DeploymentWords = DeploymentWords {
    newest_first: "Развёртывания, сначала новые",
    deployments: "Развёртывания",
    none: "Их нет.",
    stage: "Стадия",
    guild: "Гильдия",
    progress: "Ход",
    applied_of: "Применено шагов: {} из {}",
    failed: "Ошибок",
    begun: "Начато",
    ended: "Завершено",
    note: "Примечание",
    plans: "Планов",
    warning: "Внимание",
    steps: "Шаги",
    events: "События",
    state_of_steps: "Состояние каждого шага",
    last_events: "Последние события, сначала новые",
    step: "Шаг",
    action: "Действие",
    event: "Событие",
};

impl Language {
    pub(super) const fn deployment_words(self) -> &'static DeploymentWords {
        match self {
            Self::English => &ENGLISH,
            Self::Russian => &RUSSIAN,
        }
    }
}
