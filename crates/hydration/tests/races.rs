//! Get, answer, time-out, cancel and invalidate of one entity at every interleaving that a
//! scheduler can produce, with the steps in the order in which the crate takes them: register, look
//! again, publish on the one side, store and wake on the other. A failure prints the schedule that
//! reproduces it.

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shuttle::rand::{Rng, thread_rng};
    use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use shuttle::sync::{Arc, Mutex};
    use shuttle::thread;
    use tidegate_core::Time;
    use tidegate_core::hydration::{
        Absence, AbsenceReason, AnswerOrigin, AskOutcome, AskRequest, CorrelationId, EntityKey, EntityStamp,
        FlightRules, FlightTable, HydrationMode, PublishOutcome, Question, TimerEffect, Waiter, WaiterKind,
    };

    const CALLERS: usize = 3;
    const SCHEDULES: usize = 2_000;
    const ABSENT: Absence = Absence {
        reason: AbsenceReason::DeletedOrNeverExisted,
        stamp: EntityStamp { version: None, as_of: None },
    };

    /// What a caller may be told; 0 is nothing yet.
    const FOUND: usize = 1;
    const NOT_FOUND: usize = 2;
    const FAILED: usize = 3;

    /// A channel that may be written once.
    type Channel = Arc<AtomicUsize>;

    struct World {
        table: Mutex<FlightTable<Channel>>,
        /// The local copy: whether it is current. Changed in steps of its own, as a database is.
        copy: Mutex<bool>,
        /// Questions on the bus.
        bus: Mutex<Vec<Question>>,
        clock: AtomicU64,
        published: AtomicUsize,
        causes: AtomicUsize,
    }

    fn key() -> EntityKey {
        EntityKey::new("acme", "customer", "c-7").unwrap()
    }

    impl World {
        fn new() -> Self {
            Self {
                table: Mutex::new(FlightTable::new(FlightRules::default())),
                copy: Mutex::new(false),
                bus: Mutex::new(Vec::new()),
                clock: AtomicU64::new(1_000_000_000),
                published: AtomicUsize::new(0),
                causes: AtomicUsize::new(0),
            }
        }

        fn now(&self) -> Time {
            Time::from_micros(self.clock.load(Ordering::SeqCst))
        }

        fn has_copy(&self) -> bool {
            *self.copy.lock().unwrap()
        }

        fn wake(waiters: Vec<Waiter<Channel>>, told: usize) {
            for waiter in waiters {
                assert_eq!(waiter.handle.swap(told, Ordering::SeqCst), 0, "told twice");
            }
        }

        fn publish(&self, question: &Question) {
            // Another node may know that there is none.
            if thread_rng().gen_range(0..8) == 0 && !self.has_copy() {
                let until = self.now().after(Duration::from_secs(60));
                let woken = self.table.lock().unwrap().absent_elsewhere(question, ABSENT, self.now(), until);
                return Self::wake(woken, NOT_FOUND);
            }
            self.published.fetch_add(1, Ordering::SeqCst);
            self.bus.lock().unwrap().push(question.clone());
            thread::yield_now();
            let outcome = match thread_rng().gen_range(0..8) {
                0 => PublishOutcome::NoSubscriber,
                1 => PublishOutcome::Failed,
                _ => PublishOutcome::Sent,
            };
            let woken = self.table.lock().unwrap().published(question, outcome);
            Self::wake(woken, FAILED);
        }

        /// The first question of a flight: look again, then publish.
        fn lead(&self, question: &Question) {
            if self.has_copy() {
                let (woken, publish) =
                    self.table.lock().unwrap().found(question, &HydrationMode::Full, Time::ZERO);
                Self::wake(woken, FOUND);
                if !publish {
                    return;
                }
            }
            self.publish(question);
        }

        fn tick(&self) {
            let effects = self.table.lock().unwrap().tick(self.now());
            for effect in effects {
                match effect {
                    TimerEffect::Publish(question) => self.publish(&question),
                    TimerEffect::Expire(waiters) => Self::wake(waiters, FAILED),
                }
            }
        }

        /// The answer to a question, or a change: stored first, then woken.
        fn answer(&self, question: Option<Question>, exists: bool) {
            if exists {
                *self.copy.lock().unwrap() = true;
                thread::yield_now();
                let woken =
                    self.table.lock().unwrap().updated(&key(), &HydrationMode::Full, Time::ZERO, self.now());
                return Self::wake(woken, FOUND);
            }
            let Some(question) = question else { return };
            let mut table = self.table.lock().unwrap();
            let id: CorrelationId = question.correlation_id;
            if table.origin(&key(), Some(&id), None) == AnswerOrigin::Asked && !self.has_copy() {
                let woken = table.not_found(&key(), ABSENT, self.now(), 0);
                drop(table);
                Self::wake(woken, NOT_FOUND);
            }
        }

        fn invalidate(&self) {
            self.causes.fetch_add(1, Ordering::SeqCst);
            *self.copy.lock().unwrap() = false;
            thread::yield_now();
            self.table.lock().unwrap().invalidate(&key(), self.now());
        }
    }

    /// One caller: registers, and then is told, gives up or is dropped.
    fn call(world: &Arc<World>, number: usize) {
        if world.has_copy() {
            return;
        }
        let channel: Channel = Arc::new(AtomicUsize::new(0));
        let waiter = Waiter {
            correlation_id: CorrelationId::new(&format!("c{number}")).unwrap(),
            mode: if number == 0 { HydrationMode::Existence } else { HydrationMode::Full },
            since: None,
            until: world.now().after(Duration::from_millis(500)),
            kind: WaiterKind::Blocking,
            handle: Arc::clone(&channel),
        };
        let until = waiter.until;
        world.causes.fetch_add(1, Ordering::SeqCst);
        let asked = world.table.lock().unwrap().ask(
            &key(),
            AskRequest { waiter, has_looked_again: true },
            world.now(),
        );
        let (ticket, task) = match asked {
            AskOutcome::Joined(ticket) => (ticket, None),
            AskOutcome::Opened(ticket, question) => {
                let flight = Arc::clone(world);
                (ticket, Some(thread::spawn(move || flight.lead(&question))))
            }
            AskOutcome::Upgraded(ticket, question) => {
                let flight = Arc::clone(world);
                (ticket, Some(thread::spawn(move || flight.publish(&question))))
            }
            AskOutcome::NotFound(..) | AskOutcome::Unanswered(..) => return,
            other => panic!("{other:?}"),
        };
        let is_dropped = thread_rng().gen_bool(0.2);
        while channel.load(Ordering::SeqCst) == 0 && world.now() < until && !is_dropped {
            thread::yield_now();
        }
        let removed = world.table.lock().unwrap().cancel(&ticket);
        if removed.is_some() {
            assert_eq!(channel.swap(FAILED, Ordering::SeqCst), 0, "told, and still registered");
        }
        assert!(
            removed.is_some() || channel.load(Ordering::SeqCst) != 0 || is_dropped || world.now() >= until
        );
        if let Some(task) = task {
            task.join().unwrap();
        }
    }

    fn race() {
        let world = Arc::new(World::new());
        let mut threads: Vec<_> = (0..CALLERS)
            .map(|number| {
                let world = Arc::clone(&world);
                thread::spawn(move || call(&world, number))
            })
            .collect();
        threads.push(thread::spawn({
            let world = Arc::clone(&world);
            move || {
                for _ in 0..4 {
                    let question = world.bus.lock().unwrap().pop();
                    world.answer(question, thread_rng().gen_bool(0.6));
                    thread::yield_now();
                }
            }
        }));
        threads.push(thread::spawn({
            let world = Arc::clone(&world);
            move || {
                for _ in 0..8 {
                    let millis = [1, 50, 200, 500, 5_000][thread_rng().gen_range(0..5)];
                    world.clock.fetch_add(millis * 1_000, Ordering::SeqCst);
                    world.tick();
                    match thread_rng().gen_range(0..6) {
                        0 => world.invalidate(),
                        1 => {
                            world.causes.fetch_add(1, Ordering::SeqCst);
                            world.table.lock().unwrap().gap(world.now());
                        }
                        _ => thread::yield_now(),
                    }
                }
                // The end of all waits and windows, whoever still spins.
                for _ in 0..3 {
                    world.clock.fetch_add(6_000_000, Ordering::SeqCst);
                    world.tick();
                }
            }
        }));
        for thread in threads {
            thread.join().unwrap();
        }
        for _ in 0..3 {
            world.clock.fetch_add(6_000_000, Ordering::SeqCst);
            world.tick();
        }
        let table = world.table.lock().unwrap();
        assert_eq!(
            (table.flights(), table.waiters(), table.next_timer()),
            (0, (0, 0), None),
            "it ends empty"
        );
        // Each cause opens at most one window of two questions, or one upgrade, or one more
        // question.
        let most = 2 * world.causes.load(Ordering::SeqCst) + 8 * 2;
        assert!(world.published.load(Ordering::SeqCst) <= most);
    }

    /// HYD-6, HYD-25: no lost wake-up, no caller told twice, and the table ends empty.
    #[test]
    fn hyd_6_hyd_25_no_lost_wake_up_and_no_second_one() {
        shuttle::check_random(race, SCHEDULES);
        shuttle::check_pct(race, SCHEDULES, 3);
    }

    /// HYD-4: with the second look an answer is never missed: whoever waits is told, without a
    /// question, though the answer came between its first look and its registration.
    #[test]
    fn hyd_4_an_answer_is_seen_by_the_second_look_or_by_the_waking() {
        let meet = || {
            let world = Arc::new(World::new());
            let answer = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.answer(None, true))
            };
            let channel: Channel = Arc::new(AtomicUsize::new(0));
            if !world.has_copy() {
                let waiter = Waiter {
                    correlation_id: CorrelationId::new("c").unwrap(),
                    mode: HydrationMode::Full,
                    since: None,
                    until: Time::MAX,
                    kind: WaiterKind::Blocking,
                    handle: Arc::clone(&channel),
                };
                let request = AskRequest { waiter, has_looked_again: false };
                let asked = world.table.lock().unwrap().ask(&key(), request, world.now());
                let AskOutcome::Opened(_, question) = asked else { panic!("{asked:?}") };
                if world.has_copy() {
                    let (woken, publish) =
                        world.table.lock().unwrap().found(&question, &HydrationMode::Full, Time::ZERO);
                    World::wake(woken, FOUND);
                    assert!(!publish);
                }
                answer.join().unwrap();
                assert_eq!(channel.load(Ordering::SeqCst), FOUND, "the answer was missed");
            } else {
                answer.join().unwrap();
            }
        };
        shuttle::check_random(meet, SCHEDULES);
        shuttle::check_pct(meet, SCHEDULES, 3);
    }
}
