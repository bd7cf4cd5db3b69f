//! Requests with one key at every interleaving that a scheduler can produce: they claim, renew,
//! complete, release, expire and crash while time passes and an operator frees keys. A failure
//! prints the schedule that reproduces it.

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shuttle::rand::{Rng, thread_rng};
    use shuttle::sync::atomic::{AtomicU64, Ordering};
    use shuttle::sync::{Arc, Mutex};
    use shuttle::thread;
    use tidegate_core::Time;
    use tidegate_core::shared::record::{
        self, ForgetOutcome, ForgetTarget, HolderToken, OnLapse, Record, RecordClaim, RecordClaimOutcome,
    };

    const LEASE: Duration = Duration::from_secs(30);
    const TTL: Duration = Duration::from_secs(100);
    const REQUESTS: u8 = 3;
    const SCHEDULES: usize = 3_000;

    /// One store: a record that one step at a time may touch, and what has been observed of it.
    #[derive(Default)]
    struct Store {
        record: Option<Record<u8>>,
        seen: ObservedState,
    }

    /// What any client may conclude from the results alone.
    #[derive(Default)]
    struct ObservedState {
        /// The holder that was granted the key, and until when no other may have it.
        owner: Option<(HolderToken, Time)>,
        /// The saved response, and until when it may not change.
        answer: Option<(u8, Time)>,
    }

    struct World {
        store: Mutex<Store>,
        clock: AtomicU64,
        on_lapse: OnLapse,
    }

    impl World {
        fn now(&self) -> Time {
            Time::from_micros(self.clock.load(Ordering::SeqCst))
        }

        /// Claims the key, and checks that no one else could have it.
        fn claim(&self, token: HolderToken) -> RecordClaimOutcome<u8> {
            let mut store = self.store.lock().unwrap();
            let now = self.now();
            let claim =
                RecordClaim { fingerprint: [7; 32], token, lease: LEASE, ttl: TTL, on_lapse: self.on_lapse };
            let (next, claimed) = record::claim(store.record.take(), claim, now);
            store.record = next;
            let seen = &mut store.seen;
            if let Some((answer, _)) = seen.answer.filter(|(_, until)| *until > now) {
                assert_eq!(
                    claimed,
                    RecordClaimOutcome::Completed(answer),
                    "a kept answer never changes while its time is not up"
                );
            }
            if let RecordClaimOutcome::Granted { .. } = claimed {
                if let Some((owner, until)) = seen.owner {
                    assert!(owner == token || until <= now, "two live owners");
                }
                seen.owner = Some((token, now.after(LEASE)));
                seen.answer = None;
            }
            claimed
        }

        fn renew(&self, token: HolderToken) -> bool {
            let mut store = self.store.lock().unwrap();
            let now = self.now();
            let (next, kept) = record::renew(store.record.take(), token, now, LEASE);
            store.record = next;
            assert_eq!(kept, store.seen.owner.is_some_and(|(owner, _)| owner == token), "who renews, owns");
            if kept {
                store.seen.owner = Some((token, now.after(LEASE)));
            }
            kept
        }

        fn complete(&self, token: HolderToken, answer: u8) -> bool {
            let mut store = self.store.lock().unwrap();
            let (next, kept) = record::complete(store.record.take(), token, answer);
            store.record = next;
            assert_eq!(
                kept,
                store.seen.owner.is_some_and(|(owner, _)| owner == token),
                "who completes, owns"
            );
            if kept {
                let expires = store.record.as_ref().map_or(Time::MAX, |record| record.expires);
                store.seen = ObservedState { owner: None, answer: Some((answer, expires)) };
            }
            kept
        }

        fn release(&self, token: HolderToken) {
            let mut store = self.store.lock().unwrap();
            let (next, freed) = record::release(store.record.take(), token);
            store.record = next;
            assert_eq!(freed, store.seen.owner.is_some_and(|(owner, _)| owner == token), "who frees, owns");
            if freed {
                store.seen.owner = None;
            }
        }

        /// An operator frees the key, or a sweep removes it when it has expired.
        fn free_by_hand(&self) {
            let mut store = self.store.lock().unwrap();
            let now = self.now();
            let what = if thread_rng().gen_bool(0.5) { ForgetTarget::Claim } else { ForgetTarget::Answer };
            let (next, forgot) = record::forget(store.record.take(), what, now);
            store.record = next.filter(|record| !record::is_sweepable(record, now));
            if forgot == ForgetOutcome::Gone || store.record.is_none() {
                store.seen = ObservedState::default();
            }
        }
    }

    /// One request: it retries until it has a response, and may die at any step while it owns the
    /// key.
    fn request(world: &World, number: u8) {
        for attempt in 0..4_u8 {
            let token = HolderToken([number * 16 + attempt + 1; 16]);
            match world.claim(token) {
                RecordClaimOutcome::Granted { .. } => match thread_rng().gen_range(0..6) {
                    0 => return, // Dies with the key in hand.
                    1 => world.release(token),
                    2 => {
                        world.renew(token);
                        thread::yield_now();
                        world.complete(token, number);
                    }
                    3 => {
                        world.complete(token, number);
                        assert!(!world.complete(token, number + 100), "completed twice");
                    }
                    _ => {
                        thread::yield_now();
                        world.complete(token, number);
                    }
                },
                RecordClaimOutcome::Completed(_) => return,
                RecordClaimOutcome::Unknown => assert_eq!(world.on_lapse, OnLapse::Hold),
                RecordClaimOutcome::Processing { .. } => {}
                RecordClaimOutcome::Conflict => panic!("there is one body only"),
            }
            thread::yield_now();
        }
    }

    fn race(on_lapse: OnLapse) {
        let store = Mutex::new(Store::default());
        let world = Arc::new(World { store, clock: AtomicU64::new(1_000_000_000), on_lapse });
        let mut threads: Vec<_> = (0..REQUESTS)
            .map(|number| {
                let world = Arc::clone(&world);
                thread::spawn(move || request(&world, number))
            })
            .collect();
        threads.push(thread::spawn({
            let world = Arc::clone(&world);
            move || {
                for _ in 0..6 {
                    let seconds = [1, 10, 31, 101][thread_rng().gen_range(0..4)];
                    world.clock.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
                    if thread_rng().gen_bool(0.2) {
                        world.free_by_hand();
                    }
                    thread::yield_now();
                }
            }
        }));
        for thread in threads {
            thread.join().unwrap();
        }
    }

    /// IDM-7, IDM-8: one live owner for each key, and a saved response never changes, whoever dies
    /// and when.
    #[test]
    fn a_key_has_one_owner_and_one_answer() {
        shuttle::check_random(|| race(OnLapse::TakeOver), SCHEDULES);
        shuttle::check_pct(|| race(OnLapse::TakeOver), SCHEDULES, 3);
    }

    /// IDM-18: the same where a dead owner's key is held.
    #[test]
    fn a_held_key_has_one_owner_and_one_answer() {
        shuttle::check_random(|| race(OnLapse::Hold), SCHEDULES);
        shuttle::check_pct(|| race(OnLapse::Hold), SCHEDULES, 3);
    }
}
