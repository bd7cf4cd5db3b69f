//! How many questions a tenant may ask in a second. One time per tenant is enough: when its budget
//! would be whole again (the generic cell rate algorithm). Tenants with a whole budget are not
//! remembered.

use std::collections::BTreeMap;

use crate::bounds::HYDRATION_TENANTS_MAX;
use crate::time::Time;

const SECOND_MICROS: u64 = 1_000_000;

/// The budgets of tenants that asked lately.
#[derive(Debug, Default)]
pub(super) struct QuestionRate {
    whole_again: BTreeMap<Box<str>, Time>,
}

impl QuestionRate {
    /// Takes one question from the budget of a tenant, or returns `false`.
    pub(super) fn take(&mut self, tenant: &str, per_s: u32, now: Time) -> bool {
        let per_s = u64::from(per_s.max(1));
        let whole = self.whole_again.get(tenant).copied().unwrap_or(now).max(now);
        let spent = whole.as_micros() - now.as_micros();
        let each = SECOND_MICROS.div_ceil(per_s);
        if spent + each > SECOND_MICROS.max(each) {
            return false;
        }
        if self.whole_again.len() >= HYDRATION_TENANTS_MAX && !self.whole_again.contains_key(tenant) {
            self.whole_again.retain(|_, whole| *whole > now);
            if self.whole_again.len() >= HYDRATION_TENANTS_MAX {
                return false;
            }
        }
        let next = Time::from_micros(whole.as_micros() + each);
        match self.whole_again.get_mut(tenant) {
            Some(known) => *known = next,
            None => {
                self.whole_again.insert(tenant.into(), next);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// HYD-26: a second's worth at once, then as many as the rate allows; each tenant by itself.
    #[test]
    fn hyd_26_questions_of_a_tenant_are_bounded() {
        let mut rate = QuestionRate::default();
        let mut now = Time::from_millis(1_000);
        let burst = (0..100).filter(|_| rate.take("a", 10, now)).count();
        assert_eq!(burst, 10);
        assert!(rate.take("b", 10, now), "another tenant has its own budget");
        let mut later = 0;
        for _ in 0..1_000 {
            now = now.after(Duration::from_millis(10));
            later += usize::from(rate.take("a", 10, now));
        }
        assert_eq!(later, 100, "ten in each of ten seconds");
    }

    /// HYD-26: tenants are not remembered for ever.
    #[test]
    fn hyd_26_idle_tenants_are_forgotten() {
        let mut rate = QuestionRate::default();
        let now = Time::from_millis(1_000);
        for tenant in 0..HYDRATION_TENANTS_MAX {
            assert!(rate.take(&tenant.to_string(), 1_000, now));
        }
        assert!(!rate.take("one more", 1_000, now));
        assert!(rate.take("one more", 1_000, now.after(Duration::from_secs(1))));
        assert_eq!(rate.whole_again.len(), 1);
    }
}
