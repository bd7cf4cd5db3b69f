//! All problems of one request, collected so that its sender learns of all of them at once.

use tidegate::{Error, Result};

/// How many problems of one request are reported at most; the rest are left out.
pub(crate) const PROBLEMS_MAX: usize = 20;

/// The problems found so far, in the order they were found.
#[derive(Debug, Default)]
pub(crate) struct RequestProblems(Vec<Error>);

impl RequestProblems {
    /// Adds an error, with all further problems that it contains.
    pub(crate) fn add(&mut self, mut error: Error) {
        let also = std::mem::take(&mut error.also);
        let room = PROBLEMS_MAX.saturating_sub(self.0.len());
        self.0.extend(std::iter::once(error).chain(also).take(room));
    }

    /// Returns the value; if it is an error, a placeholder that is never used, because `finish`
    /// fails.
    pub(crate) fn check<T: Default>(&mut self, read: Result<T>) -> T {
        read.unwrap_or_else(|error| {
            self.add(error);
            T::default()
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// # Errors
    /// The first problem, with the others.
    pub(crate) fn finish(self) -> Result<()> {
        let mut all = self.0.into_iter();
        let Some(mut first) = all.next() else { return Ok(()) };
        first.also = all.collect();
        Err(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::ErrorCode;

    #[test]
    fn all_are_told_with_the_first_and_no_more_than_fit() {
        let problem = |field: &str| Error::new(ErrorCode::Malformed, "…").field(field);
        let mut problems = RequestProblems::default();
        assert_eq!(problems.check(Ok(7)), 7);
        assert!(problems.is_empty());
        assert_eq!(problems.check::<u64>(Err(problem("a"))), 0);
        let mut second = problem("b");
        second.also = [problem("c")].into();
        problems.add(second);
        let told = problems.finish().unwrap_err();
        let fields: Vec<_> = told.also.iter().map(|also| also.field.as_deref()).collect();
        assert_eq!((told.field.as_deref(), fields), (Some("a"), vec![Some("b"), Some("c")]));
        let mut many = RequestProblems::default();
        (0..100).for_each(|n| many.add(problem(&n.to_string())));
        assert_eq!(many.finish().unwrap_err().also.len(), PROBLEMS_MAX - 1);
    }
}
