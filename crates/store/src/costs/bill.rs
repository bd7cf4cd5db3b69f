//! Sums up costs by shape. Stores with their own query language must produce the same result as
//! these functions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate_core::{LimitName, Time};

use super::Cost;

/// Selects the costs to sum up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostQuery {
    /// Only costs of this upstream.
    pub upstream: Option<Arc<str>>,
    /// Only costs of calls that completed then or later.
    pub since: Time,
    /// The maximum number of shapes, the most expensive first.
    pub most: usize,
}

/// What the calls of one shape cost in one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostLine {
    /// The limit.
    pub limit: Arc<str>,
    /// The shape.
    pub shape: Arc<str>,
    /// The number of calls.
    pub calls: u64,
    /// The amount taken for them before they were sent.
    pub requested: u64,
    /// Their effective cost.
    pub actual: u64,
    /// The effective cost of all calls of all shapes in this limit.
    pub of_limit: u64,
    /// When the last of them completed.
    pub last: Time,
}

/// Costs by shape, the most expensive first; ties are ordered by limit and shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostReport {
    /// One line for each limit and shape.
    pub lines: Vec<CostLine>,
    /// Whether all matching rows were scanned; otherwise only the newest of them.
    pub is_whole: bool,
}

/// Sums up costs: the result that every store returns for exactly these rows.
pub fn sum_costs<'a>(costs: impl Iterator<Item = &'a Cost>, question: &CostQuery) -> CostReport {
    let mut lines: HashMap<(&str, &str), CostLine> = HashMap::new();
    let mut limits: HashMap<&str, u64> = HashMap::new();
    let wanted = |cost: &&Cost| {
        cost.at >= question.since
            && question
                .upstream
                .as_deref()
                .is_none_or(|upstream| upstream == LimitName::parse(&cost.limit).upstream())
    };
    for cost in costs.filter(wanted) {
        let of_limit = limits.entry(&cost.limit).or_default();
        *of_limit = of_limit.saturating_add(cost.effective_cost());
        let line = lines.entry((&cost.limit, &cost.shape)).or_insert_with(|| CostLine {
            limit: Arc::clone(&cost.limit),
            shape: Arc::clone(&cost.shape),
            calls: 0,
            requested: 0,
            actual: 0,
            of_limit: 0,
            last: cost.at,
        });
        line.calls += 1;
        line.requested = line.requested.saturating_add(cost.requested);
        line.actual = line.actual.saturating_add(cost.effective_cost());
        line.last = line.last.max(cost.at);
    }
    let mut lines: Vec<CostLine> = lines.into_values().collect();
    for line in &mut lines {
        line.of_limit = limits.get(&*line.limit).copied().unwrap_or_default();
    }
    lines.sort_unstable_by(dearest_first);
    lines.truncate(question.most);
    CostReport { lines, is_whole: true }
}

/// Merges the reports of disjoint sources.
#[must_use]
pub fn merge_reports(bills: Vec<CostReport>, most: usize) -> CostReport {
    let mut all = CostReport { lines: Vec::new(), is_whole: bills.iter().all(|bill| bill.is_whole) };
    if bills.len() == 1 {
        return bills.into_iter().next().unwrap_or(all);
    }
    let mut limits: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    let mut lines: BTreeMap<(Arc<str>, Arc<str>), CostLine> = BTreeMap::new();
    for bill in bills {
        let of_limits: BTreeMap<_, _> =
            bill.lines.iter().map(|line| (Arc::clone(&line.limit), line.of_limit)).collect();
        for (limit, amount) in of_limits {
            let of_limit = limits.entry(limit).or_default();
            *of_limit = of_limit.saturating_add(amount);
        }
        for line in bill.lines {
            let key = (Arc::clone(&line.limit), Arc::clone(&line.shape));
            match lines.get_mut(&key) {
                Some(known) => known.add(&line),
                None => drop(lines.insert(key, line)),
            }
        }
    }
    all.lines = lines.into_values().collect();
    for line in &mut all.lines {
        line.of_limit = limits.get(&line.limit).copied().unwrap_or_default();
    }
    all.lines.sort_unstable_by(dearest_first);
    all.lines.truncate(most);
    all
}

impl CostLine {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.requested = self.requested.saturating_add(other.requested);
        self.actual = self.actual.saturating_add(other.actual);
        self.last = self.last.max(other.last);
    }
}

fn dearest_first(a: &CostLine, b: &CostLine) -> std::cmp::Ordering {
    (b.actual, &a.limit, &a.shape).cmp(&(a.actual, &b.limit, &b.shape))
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Fence, OperationId, Seq};

    use super::*;

    fn cost(limit: &str, shape: &str, requested: u64, actual: Option<u64>, at: u64) -> Cost {
        let operation = OperationId::new(Time::ZERO, 0, Seq(at));
        let (limit, shape) = (limit.into(), shape.into());
        Cost {
            at: Time::from_millis(at),
            operation,
            claim: Fence(at),
            nth: 0,
            limit,
            shape,
            requested,
            actual,
            restore_rate: None,
        }
    }

    /// LIM-10: costs are summed up by limit and shape, the most expensive first; an unreported cost
    /// counts as the amount taken.
    #[test]
    fn lim_10_costs_are_summed_up_by_shape() {
        let costs = [
            cost("acme/points", "Cheap#1", 10, Some(2), 5),
            cost("acme/points", "Dear#2", 10, None, 6),
            cost("acme/points", "Cheap#1", 10, Some(3), 7),
            cost("other/points", "Cheap#1", 500, Some(90), 8),
            cost("acme/points", "Early#3", 10, Some(1_000), 1),
        ];
        let question = |upstream: Option<&str>, most| CostQuery {
            upstream: upstream.map(Into::into),
            since: Time::from_millis(5),
            most,
        };
        let bill = sum_costs(costs.iter(), &question(Some("acme"), 9));
        let told: Vec<_> = bill
            .lines
            .iter()
            .map(|line| (&*line.shape, line.calls, line.requested, line.actual, line.of_limit))
            .collect();
        assert_eq!(told, [("Dear#2", 1, 10, 10, 15), ("Cheap#1", 2, 20, 5, 15)]);
        assert_eq!(bill.lines[1].last, Time::from_millis(7));
        let first = sum_costs(costs.iter(), &question(None, 1));
        assert_eq!((first.lines.len(), &*first.lines[0].limit), (1, "other/points"));
        let (some, rest) = costs.split_at(2);
        let parts =
            vec![sum_costs(some.iter(), &question(None, 9)), sum_costs(rest.iter(), &question(None, 9))];
        assert_eq!(merge_reports(parts, 9), sum_costs(costs.iter(), &question(None, 9)));
    }
}
