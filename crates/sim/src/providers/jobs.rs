//! The jobs of a provider: queued until a slot is free, running for a fixed time, ended as planned
//! when they were accepted. A plain state machine that knows no HTTP.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tidegate_core::Time;

/// Most jobs kept; beyond it the oldest that have ended are dropped.
pub const JOBS_MAX: usize = 100_000;

/// How a job ends when no one cancels it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// With a picture.
    Success,
    /// With a fault of the provider.
    Fault,
    /// With a refusal of its content.
    Content,
    /// With a refusal of its input.
    Invalid,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Waits for a slot.
    Queued,
    /// Runs.
    Running,
    /// Has ended.
    Ended(JobEnd),
    /// Was canceled.
    Canceled,
}

impl JobState {
    /// Whether nothing more will happen to it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Ended(_) | Self::Canceled)
    }
}

/// A submit that was read.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The model it is for.
    pub model: String,
    /// The input.
    pub input: Value,
    /// The prompt in it; empty when there is none.
    pub prompt: String,
    /// Where to report its end.
    pub webhook: Option<String>,
    /// What the webhook is to repeat.
    pub metadata: Option<Value>,
    /// How long the caller waits for the end.
    pub wait: Option<Duration>,
    /// Whether it runs at once or not at all, because the caller waits for the result itself.
    pub is_synchronous: bool,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number in the order of acceptance.
    pub number: u64,
    /// The id that the provider returned.
    pub id: String,
    /// The submit.
    pub spec: NewJob,
    /// When it was accepted.
    pub accepted_at: Time,
    /// When it began to run.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Its state.
    pub state: JobState,
    end: JobEnd,
}

impl Job {
    /// How long it ran, in seconds; zero before it ended.
    #[must_use]
    pub fn run_seconds(&self) -> f64 {
        match (self.started_at, self.ended_at) {
            (Some(started), Some(ended)) => ended.since(started).as_secs_f64(),
            _ => 0.0,
        }
    }
}

/// All jobs of a provider.
#[derive(Debug)]
pub struct JobTable {
    jobs: BTreeMap<u64, Job>,
    numbers: HashMap<String, u64>,
    queue: VecDeque<u64>,
    running: BTreeSet<(Time, u64)>,
    slots: usize,
    takes: Duration,
    accepted: u64,
}

impl JobTable {
    /// Creates an empty table with so many slots, in each of which a job runs for `takes`.
    #[must_use]
    pub fn new(slots: usize, takes: Duration) -> Self {
        Self {
            jobs: BTreeMap::new(),
            numbers: HashMap::new(),
            queue: VecDeque::new(),
            running: BTreeSet::new(),
            slots,
            takes,
            accepted: 0,
        }
    }

    /// Whether a job would start at once. Call `advance` first.
    #[must_use]
    pub fn has_free_slot(&self) -> bool {
        self.running.len() < self.slots && self.queue.is_empty()
    }

    /// Accepts a job, and starts it if a slot is free. Call `advance` first.
    pub fn accept(&mut self, id: String, spec: NewJob, end: JobEnd, now: Time) -> u64 {
        self.accepted += 1;
        let number = self.accepted;
        self.numbers.insert(id.clone(), number);
        let state = JobState::Queued;
        let job = Job { number, id, spec, accepted_at: now, started_at: None, ended_at: None, state, end };
        self.jobs.insert(number, job);
        self.queue.push_back(number);
        self.fill_slots(now);
        self.drop_oldest();
        number
    }

    /// Brings all jobs to this time and returns those that ended, in order.
    pub fn advance(&mut self, now: Time) -> Vec<u64> {
        let mut ended = Vec::new();
        while let Some(&(at, number)) = self.running.first().filter(|(at, _)| *at <= now) {
            self.running.pop_first();
            self.finish(number, at);
            ended.push(number);
            // A slot that becomes free is taken at that moment, not when someone looks.
            self.fill_slots(at);
        }
        ended
    }

    /// Ends a job at once, as planned, and reports whether it had not ended before.
    pub fn finish_now(&mut self, number: u64, now: Time) -> bool {
        let is_open = self.jobs.get(&number).is_some_and(|job| !job.state.is_final());
        if is_open {
            self.finish(number, now);
            self.give_up_slot(number, now);
        }
        is_open
    }

    /// Cancels a job, and returns the state that it had.
    pub fn cancel(&mut self, id: &str, now: Time) -> Option<JobState> {
        let number = *self.numbers.get(id)?;
        let job = self.jobs.get_mut(&number)?;
        let before = job.state;
        if !before.is_final() {
            job.state = JobState::Canceled;
            job.ended_at = Some(now);
            self.give_up_slot(number, now);
        }
        Some(before)
    }

    /// When the next job ends.
    #[must_use]
    pub fn next_end(&self) -> Option<Time> {
        self.running.first().map(|(at, _)| *at)
    }

    /// Returns a job by its id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Job> {
        self.jobs.get(self.numbers.get(id)?)
    }

    /// Returns a job by its number.
    #[must_use]
    pub fn by_number(&self, number: u64) -> Option<&Job> {
        self.jobs.get(&number)
    }

    /// Returns all jobs, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().rev()
    }

    /// How many jobs wait before this one.
    #[must_use]
    pub fn position(&self, number: u64) -> usize {
        self.queue.iter().take_while(|queued| **queued != number).count()
    }

    fn fill_slots(&mut self, now: Time) {
        while self.running.len() < self.slots
            && let Some(number) = self.queue.pop_front()
        {
            let Some(job) = self.jobs.get_mut(&number) else { continue };
            job.state = JobState::Running;
            job.started_at = Some(now);
            self.running.insert((now.after(self.takes), number));
        }
    }

    fn finish(&mut self, number: u64, at: Time) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.state = JobState::Ended(job.end);
            job.started_at.get_or_insert(job.accepted_at);
            job.ended_at = Some(at);
        }
    }

    fn give_up_slot(&mut self, number: u64, now: Time) {
        self.queue.retain(|queued| *queued != number);
        self.running.retain(|(_, running)| *running != number);
        self.fill_slots(now);
    }

    fn drop_oldest(&mut self) {
        while self.jobs.len() > JOBS_MAX
            && let Some(number) = self.jobs.iter().find(|(_, job)| job.state.is_final()).map(|(n, _)| *n)
        {
            if let Some(job) = self.jobs.remove(&number) {
                self.numbers.remove(&job.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> NewJob {
        NewJob {
            model: "m".into(),
            input: Value::Null,
            prompt: "a cat".into(),
            webhook: None,
            metadata: None,
            wait: None,
            is_synchronous: false,
        }
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn table(slots: usize) -> JobTable {
        JobTable::new(slots, Duration::from_millis(100))
    }

    fn add(jobs: &mut JobTable, id: &str, now: Time) -> u64 {
        jobs.advance(now);
        jobs.accept(id.to_owned(), spec(), JobEnd::Success, now)
    }

    /// DSP-26: no more jobs run at once than there are slots, in order, and a late look changes
    /// nothing.
    #[test]
    fn dsp_26_slots_are_enforced_and_taken_when_they_become_free() {
        let mut jobs = table(2);
        for id in ["a", "b", "c", "d", "e"] {
            add(&mut jobs, id, at(0));
        }
        assert!(jobs.advance(at(50)).is_empty());
        let states = |jobs: &JobTable| ["a", "b", "c", "d", "e"].map(|id| jobs.get(id).unwrap().state);
        let (done, runs, waits) = (JobState::Ended(JobEnd::Success), JobState::Running, JobState::Queued);
        assert_eq!(states(&jobs), [runs, runs, waits, waits, waits]);
        assert_eq!((jobs.position(3), jobs.position(5)), (0, 2));
        assert_eq!(jobs.advance(at(250)), [1, 2, 3, 4]);
        assert_eq!(states(&jobs), [done, done, done, done, runs]);
        assert_eq!(jobs.get("e").unwrap().started_at, Some(at(200)));
        assert_eq!(jobs.next_end(), Some(at(300)));
    }

    #[test]
    fn a_canceled_job_frees_its_slot_once() {
        let mut jobs = table(1);
        for id in ["a", "b"] {
            add(&mut jobs, id, at(0));
        }
        jobs.advance(at(10));
        assert_eq!(jobs.cancel("a", at(20)), Some(JobState::Running));
        assert_eq!(jobs.cancel("a", at(21)), Some(JobState::Canceled));
        assert_eq!(jobs.cancel("x", at(21)), None);
        jobs.advance(at(30));
        assert_eq!(jobs.get("b").unwrap().state, JobState::Running);
        assert!(!jobs.has_free_slot());
        let number = jobs.get("b").unwrap().number;
        assert!(jobs.finish_now(number, at(40)) && !jobs.finish_now(number, at(41)));
        assert!(jobs.advance(at(1_000)).is_empty() && jobs.has_free_slot());
    }

    #[test]
    fn memory_is_bounded() {
        let mut jobs = JobTable::new(1, Duration::ZERO);
        for n in 0..JOBS_MAX as u64 + 10 {
            add(&mut jobs, &n.to_string(), at(n));
        }
        assert_eq!((jobs.jobs.len(), jobs.numbers.len()), (JOBS_MAX, JOBS_MAX));
        assert!(jobs.get("0").is_none());
    }
}
