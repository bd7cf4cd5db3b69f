//! What time and gaps bring about: repeated questions, the ends of windows, the deadlines of
//! deferred work. Each flight has one timer, its next.

use super::{FlightTable, TimerEffect};
use crate::hydration::flight::WaiterKind;
use crate::hydration::key::EntityKey;
use crate::time::Time;

impl<W> FlightTable<W> {
    /// When [`FlightTable::tick`] has something to do.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Time) -> Vec<TimerEffect<W>> {
        let mut effects = Vec::new();
        while let Some((at, _)) = self.timers.first()
            && *at <= now
            && let Some((_, key)) = self.timers.pop_first()
        {
            self.advance_flight(&key, now, &mut effects);
        }
        effects
    }

    fn advance_flight(&mut self, key: &EntityKey, now: Time, effects: &mut Vec<TimerEffect<W>>) {
        let expired =
            self.take_waiters(key, |waiter| waiter.kind == WaiterKind::Deferred && waiter.until <= now);
        if !expired.is_empty() {
            effects.push(TimerEffect::Expire(expired));
        }
        let Some(flight) = self.flights.get_mut(key) else { return };
        if flight.window_end(&self.rules) <= now {
            if flight.waiters.values().any(|waiter| waiter.until > now) {
                effects.push(TimerEffect::Publish(flight.begin_round(key, &self.rules, now)));
            } else {
                // Those left gave up just now, and have not said so yet.
                let late = self.remove_flight(key);
                if !late.is_empty() {
                    effects.push(TimerEffect::Expire(late));
                }
                return;
            }
        } else if flight.due.is_some_and(|due| due <= now) {
            effects.push(TimerEffect::Publish(flight.ask(key, &self.rules, now)));
        }
        self.reschedule(key);
    }

    /// Messages may have been lost: every open flight asks again, as soon as [`FlightTable::tick`]
    /// is called; the failure memory is forgotten, and "not found" is remembered for one more
    /// window at most.
    pub fn gap(&mut self, now: Time) {
        self.negatives.expire_by(now, now.after(self.rules.in_flight_window));
        let keys: Vec<_> = self.flights.keys().cloned().collect();
        for key in &keys {
            let Some(flight) = self.flights.get_mut(key) else { continue };
            if flight.waiters.is_empty() && flight.failure(&self.rules, now).is_some() {
                self.remove_flight(key);
            } else {
                flight.ask_again(&self.rules, now);
                self.reschedule(key);
            }
        }
    }

    pub(super) fn reschedule(&mut self, key: &EntityKey) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let next = flight.next_timer(&self.rules);
        // What has fired is no longer in the set, though the flight still has its time.
        self.timers.remove(&(flight.timer, key.clone()));
        flight.timer = next;
        self.timers.insert((next, key.clone()));
    }
}
