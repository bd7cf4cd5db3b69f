//! Collects commands and reports into the batch that is under construction, up to its share.

use super::Owner;

/// How often a batch waits for tasks that are ready, before it is sealed.
const JOIN_ROUNDS_MAX: usize = 4;

impl Owner {
    /// Collects what is already waiting: reports and commands in turn, so that neither waits for
    /// all of the others.
    pub(super) fn gather(&mut self) {
        let most = self.commands_max();
        loop {
            let answers = self.building.has_room_for_answers(most);
            let event = if answers { self.calls.events.try_recv().ok() } else { None };
            let none = event.is_none();
            if let Some(event) = event {
                self.apply_call_event(event);
            }
            let command = if self.building.has_room(most) { self.commands.try_recv().ok() } else { None };
            match command {
                Some(command) => self.apply(command),
                None if none => break,
                None => {}
            }
        }
    }

    /// The commands that are collected or wait to be.
    pub(super) fn waiting(&self) -> usize {
        self.building.commands + self.commands.len() + self.calls.events.len()
    }

    /// The most commands that the batch takes.
    pub(super) fn commands_max(&self) -> usize {
        self.share.limit(self.waiting()).min(self.options.batch_max)
    }

    /// Lets the tasks that are ready run before a batch is sealed: what they submit and report
    /// joins it. Otherwise the first of many callers that wake together would get an append of its
    /// own, and the others would wait for it. On an idle runtime this is one turn of the scheduler.
    pub(super) async fn let_ready_tasks_join(&mut self) {
        for _ in 0..JOIN_ROUNDS_MAX {
            let before = self.building.commands;
            if self.building.is_empty() || !self.building.has_room(self.commands_max()) {
                return;
            }
            tokio::task::yield_now().await;
            self.gather();
            if self.building.commands == before {
                return;
            }
        }
    }
}
