//! Lists of active operations, newest first. Operations that need an operator or are in flight come
//! from their index, those of a group from its queue. Only the rest requires a scan, over a bounded
//! number at a time, and the page says where to continue.

use super::entry::{Entry, EntryIx};
use super::view::{ActiveOperation, state_of};
use super::{GroupIx, Model};
use crate::id::Seq;
use crate::state::State;

/// Selects the operations of a list.
#[derive(Clone, Copy, Debug)]
pub struct ActiveQuery<'a> {
    /// Only operations in this state.
    pub state: State,
    /// Only operations of this group.
    pub group: Option<&'a str>,
    /// Only operations of this kind.
    pub kind: Option<&'a str>,
    /// Only sequence numbers below this one.
    pub before: Option<Seq>,
    /// The maximum number of operations to return.
    pub limit: usize,
    /// The approximate maximum number of operations to scan.
    pub scan_max: usize,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivePage {
    /// Newest first.
    pub operations: Vec<ActiveOperation>,
    /// Where the list continues; `None` at the end. A page can be empty although more follow.
    pub next: Option<Seq>,
}

impl Model {
    /// Returns a page of operations that have not ended.
    #[must_use]
    pub fn list(&self, wanted: &ActiveQuery<'_>) -> ActivePage {
        let kind = match wanted.kind {
            Some(kind) => match self.kinds.iter().position(|known| **known == *kind) {
                Some(kind) => Some(kind),
                None => return ActivePage::default(),
            },
            None => None,
        };
        let group = match wanted.group {
            Some(name) => match self.by_group.get(name) {
                Some(ix) => Some(*ix),
                None => return ActivePage::default(),
            },
            None => None,
        };
        let matches = |entry: &Entry| {
            kind.is_none_or(|kind| usize::from(entry.kind) == kind)
                && group.is_none_or(|group| entry.group == group)
                && state_of(&self.groups[entry.group.at()], entry) == wanted.state
        };
        match (wanted.state, group) {
            (State::Queued, Some(ix)) if self.groups[ix.at()].depth as usize <= wanted.scan_max => {
                let line = std::iter::successors(self.groups[ix.at()].head, |ix| self.entries[ix.at()].next);
                self.page(self.sorted(line, wanted.before), wanted, matches)
            }
            (State::Queued, _) => self.page(self.everything(wanted.before), wanted, matches),
            // In every other state there can only be the head of a group.
            (_, Some(ix)) => {
                self.page(self.sorted(self.heads(std::iter::once(ix)), wanted.before), wanted, matches)
            }
            (State::Unknown, None) => {
                let seqs = self.unknown.range(..wanted.before.unwrap_or(Seq(u64::MAX))).rev();
                self.page(seqs.filter_map(|seq| self.by_seq.get(*seq)), wanted, matches)
            }
            (State::Running, None) => {
                let heads = self.heads(self.running.values().chain(self.awaiting.values()).copied());
                self.page(self.sorted(heads, wanted.before), wanted, matches)
            }
            (State::Waiting, None) if self.groups.len() <= wanted.scan_max => {
                let heads = self.heads(self.by_group.values().copied());
                self.page(self.sorted(heads, wanted.before), wanted, matches)
            }
            (State::Waiting, None) => self.page(self.everything(wanted.before), wanted, matches),
            (State::Succeeded | State::Failed | State::Canceled, None) => ActivePage::default(),
        }
    }

    fn everything(&self, before: Option<Seq>) -> impl Iterator<Item = EntryIx> + '_ {
        self.by_seq.newest_first(before).map(|(_, ix)| ix)
    }

    fn heads(&self, groups: impl Iterator<Item = GroupIx>) -> impl Iterator<Item = EntryIx> {
        groups.filter_map(|ix| self.groups[ix.at()].head)
    }

    /// The operations below `before`, newest first.
    fn sorted(
        &self,
        some: impl Iterator<Item = EntryIx>,
        before: Option<Seq>,
    ) -> std::vec::IntoIter<EntryIx> {
        let seq_of = |ix: &EntryIx| self.entries[ix.at()].seq;
        let mut some: Vec<_> = some.filter(|ix| before.is_none_or(|before| seq_of(ix) < before)).collect();
        some.sort_unstable_by_key(|ix| std::cmp::Reverse(seq_of(ix)));
        some.into_iter()
    }

    fn page(
        &self,
        newest_first: impl Iterator<Item = EntryIx>,
        wanted: &ActiveQuery<'_>,
        matches: impl Fn(&Entry) -> bool,
    ) -> ActivePage {
        let mut page = ActivePage::default();
        let mut last = None;
        for (looked_at, ix) in newest_first.enumerate() {
            if page.operations.len() == wanted.limit || looked_at == wanted.scan_max {
                page.next = last;
                break;
            }
            let entry = &self.entries[ix.at()];
            last = Some(entry.seq);
            if matches(entry) {
                page.operations.push(self.view(entry));
            }
        }
        page
    }
}
